#!/bin/bash
# Fetches the frameworks that clients/js has adapters for, with their suites, into .bin/js, for the tests that run them. Where that cannot
# be, says so; those tests are then skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

package=@langchain/langgraph-checkpoint-validation@1.1.1
others=(@langchain/langgraph@1.7.3 @langchain/langgraph-checkpoint@1.2.2 @langchain/core@1.4.0 @openai/agents-core@0.20.0 ai@6.0.326 typescript@5.9.3 vitest@4.1.12)
dir=.bin/js
source scripts/npm.sh LINEAGE_TEST_JS

needs_node 22
fetch "$package" "${others[@]}"
