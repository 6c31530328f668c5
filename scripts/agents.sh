#!/bin/bash
# Fetches the coding agents that package resume makes sessions for into .bin/agents, for the tests that run them. Where that cannot be,
# says so; those tests are then skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

package=@openai/codex@0.171.0
others=(@mariozechner/pi-coding-agent@0.73.1 @qwen-code/qwen-code@0.24.4 @google/gemini-cli@0.61.0)
# OpenCode's program is a package for each system, which its installer links, and installers are not run.
[[ $(uname -sm) != "Linux x86_64" ]] || others+=(opencode-linux-x64@1.18.33)
dir=.bin/agents
source scripts/npm.sh LINEAGE_TEST_AGENTS

needs_node 22
fetch "$package" "${others[@]}"
