#!/bin/bash
# Fetches axe-core, which finds faults of accessibility, into .bin/axe, for the tests of the page.
# Where that cannot be, says so; those tests are then skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

package=axe-core@4.10.3
dir=.bin/axe
source scripts/npm.sh LINEAGE_TEST_AXE

fetch "$package"
