#!/bin/bash
# Fetches Bun and Deno into .bin/runtimes, for the test that runs the client for JavaScript with them. Where that cannot be, says so;
# that test is then skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

package=@oven/bun-linux-x64@1.4.5
deno=@deno/linux-x64-glibc@2.9.6
dir=.bin/runtimes
source scripts/npm.sh LINEAGE_TEST_RUNTIMES

[[ $(uname -sm) == "Linux x86_64" ]] || without "it is for Linux on x86_64"
fetch "$package" "$deno"
