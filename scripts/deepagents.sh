#!/bin/bash
# Fetches the TypeScript package whose databases the SQL stores read and write, and a Node that can run it, into
# .bin/deepagents, for the tests and benchmarks that run it. Where that cannot be, says so; those tests are then skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

package=@deepagents/context@0.29.1
driver=pg@8.23.1 # with which it uses Postgres
dir=.bin/deepagents
source scripts/npm.sh LINEAGE_TEST_DEEPAGENTS

needs_node 22
fetch "$package" "$driver"
