#!/usr/bin/env bash
# Usage: lanes.sh SUMMARY LANE...
# Runs lanes at the same time, each a script for bash, and SUMMARY with the names of pipes that have what they print. Fails
# if any of them does.
set -euo pipefail
summary=$1
shift
dir=$(mktemp -d)
running=()
trap 'for lane in "${running[@]}"; do kill -- "-$lane" 2>/dev/null || true; done; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
set -m # each lane is a process group, which ends as a whole
pipes=()
for lane in "$@"; do
	pipe=$dir/${#pipes[@]}
	mkfifo "$pipe"
	bash -eu -o pipefail -c "$lane" >"$pipe" </dev/null &
	running+=($!)
	pipes+=("$pipe")
done
status=0
"$summary" "${pipes[@]}" || status=1
for lane in "${running[@]}"; do wait "$lane" || status=1; done
running=()
exit "$status"
