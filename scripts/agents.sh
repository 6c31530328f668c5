#!/bin/bash
# Fetches the coding agents that package resume makes sessions for into .bin/agents, for the tests that run them. Where that cannot be,
# says so; those tests are then skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

package=@openai/codex@0.171.0
pi=@mariozechner/pi-coding-agent@0.73.1
dir=.bin/agents
source scripts/npm.sh LINEAGE_TEST_AGENTS

[[ $major -ge 20 ]] || without "it needs Node 20 or later"
fetch "$package" "$pi"
