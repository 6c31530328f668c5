#!/bin/bash
# Fetches the AI SDK, whose UI messages package message reads and writes, into .bin/aisdk, for the tests that run it.
# Where that cannot be, says so; those tests are then skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

package=ai@6.0.326
dir=.bin/aisdk

if [[ -n ${LINEAGE_TEST_AISDK:-} || -f $dir/complete ]]; then exit 0; fi
without() {
  echo "aisdk.sh: $1; tests with $package will be skipped" >&2
  exit 0
}
command -v npm >/dev/null || without "there is no npm"
major=$(node --version 2>/dev/null | sed -n 's/^v\([0-9]*\).*/\1/p')
[[ ${major:-0} -ge 18 ]] || without "it needs Node 18 or later"
mkdir -p "$dir"
echo '{"private":true}' >"$dir/package.json"
scripts/step.sh "fetching $package" npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --no-save --loglevel=error "$package" ||
  without "it could not be fetched"
touch "$dir/complete"
