#!/usr/bin/env bash
# Looks for known vulnerabilities; without a way to the database, says so and passes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
output=$(.bin/govulncheck ./... 2>&1) || status=$?
printf '%s\n' "$output"

if [[ $status -ne 0 && $output == *"fetching vulnerabilities"* ]]; then
	echo "SKIPPED: govulncheck, because its database cannot be reached"
	exit 0
fi
exit "$status"
