#!/bin/bash
# Fetches the AI SDK, whose UI messages package message reads and writes, into .bin/aisdk, for the tests that run it.
# Where that cannot be, says so; those tests are then skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

package=ai@6.0.326
dir=.bin/aisdk
source scripts/npm.sh LINEAGE_TEST_AISDK

[[ $major -ge 18 ]] || without "it needs Node 18 or later"
fetch "$package"
