#!/usr/bin/env bash
# Usage: retry.sh COMMAND [ARGUMENT]...
# Runs a command that downloads, and again while it fails, because connections break: four times, with pauses of
# RETRY_SECONDS (default 5), twice and four times as long.
set -euo pipefail
pause=${RETRY_SECONDS:-5}
for left in 3 2 1 0; do
	status=0
	"$@" || status=$?
	if [[ $status -eq 0 || $left -eq 0 ]]; then exit "$status"; fi
	echo "${1##*/} failed; again in $pause s" >&2
	sleep "$pause"
	pause=$((2 * pause))
done
