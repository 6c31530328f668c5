#!/usr/bin/env bash
# Usage: step.sh NAME COMMAND [ARGUMENT]...
# Says what is being done and runs the command. Every STEP_SECONDS (default 10) a line says how long it has been running
# and what it printed last. Its whole output is shown only if it fails.
set -euo pipefail
name=$1
shift
log=$(mktemp)
command=
trap 'if [[ -n $command ]]; then kill "$command" 2>/dev/null || true; fi; rm -f "$log"' EXIT
trap 'exit 130' INT TERM

printf '%s ...\n' "$name" >&2
"$@" >"$log" 2>&1 </dev/null &
command=$!
every=${STEP_SECONDS:-10}
next=$every
while kill -0 "$command" 2>/dev/null; do
	if ((SECONDS >= next)); then
		last=$(tail -n 1 "$log" | cut -c 1-100)
		printf '  %d s%s\n' "$SECONDS" "${last:+: $last}" >&2
		next=$((SECONDS + every))
	fi
	sleep 0.2
done
status=0
wait "$command" || status=$?
command=
if [[ $status -ne 0 ]]; then
	cat "$log" >&2
	printf '%s failed after %d s\n' "$name" "$SECONDS" >&2
	exit "$status"
fi
printf '%s: done in %d s\n' "$name" "$SECONDS" >&2
