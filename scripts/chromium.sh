#!/bin/bash
# Makes sure that there is a Chromium for the tests to start: says nothing and does nothing where one is installed or
# LINEAGE_TEST_CHROMIUM names one, else installs the Debian package, which needs root. Whether tests may go without is up
# to them: they fail where CI=true, and else say that they were skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ -n ${LINEAGE_TEST_CHROMIUM:-} ]]; then exit 0; fi
for name in chromium chromium-browser google-chrome google-chrome-stable; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
if ! command -v apt-get >/dev/null || [[ $(id -u) != 0 ]]; then
  echo "chromium.sh: not installed: chromium; tests with it cannot run" >&2
  exit 0
fi

export DEBIAN_FRONTEND=noninteractive
install="apt-get install -y --no-install-recommends chromium"
scripts/step.sh "installing chromium" scripts/retry.sh bash -c "$install || { apt-get update && $install; }" ||
  echo "chromium.sh: could not be installed: chromium; tests with it cannot run" >&2
