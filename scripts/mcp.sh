#!/bin/bash
# Fetches the conformance suite of the Model Context Protocol, and its TypeScript SDK, into .bin/mcp, for the tests that run
# them. Where that cannot be, says so; those tests are then skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

package=@modelcontextprotocol/conformance@0.2.0-alpha.12
sdk=@modelcontextprotocol/sdk@1.29.0
dir=.bin/mcp
source scripts/npm.sh LINEAGE_TEST_MCP

needs_node 22
fetch "$package" "$sdk"
