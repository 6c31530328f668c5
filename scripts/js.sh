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

# The SDK of Claude has all that it needs in itself. What it depends on is the agent's program, of 250 MB, which the tests do not run.
sdk=@anthropic-ai/claude-agent-sdk version=0.3.332
if ! grep -qs "\"version\": \"$version\"" "$dir/node_modules/$sdk/package.json"; then
  package=$sdk
  mkdir -p "$dir/node_modules/$sdk"
  file=$(scripts/retry.sh npm pack --silent --pack-destination "$dir" "$sdk@$version") || without "it could not be fetched"
  tar -xzf "$dir/$file" -C "$dir/node_modules/$sdk" --strip-components=1
  rm "$dir/$file"
fi
