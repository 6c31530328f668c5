#!/usr/bin/env bash
# Usage: inmemory.sh COMMAND [ARGUMENT]...
# Runs a command with TMPDIR in memory, where there is a file system in memory with room. Most of the time of the tests
# would otherwise be that of a disk which syncs what is removed a moment later.
set -euo pipefail
needed=$((4 << 20)) # KiB
free() {
	[[ -d /dev/shm && -w /dev/shm ]] || return 1
	local room memory
	room=$(df -Pk /dev/shm | awk 'NR == 2 { print $4 }')
	memory=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
	((room > needed && memory > 2 * needed))
}
if ! free 2>/dev/null; then exec "$@"; fi
export GOTMPDIR=${GOTMPDIR:-${TMPDIR:-/tmp}} # what is compiled is large
TMPDIR=$(mktemp -d /dev/shm/lineage-tests.XXXXXX)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
chmod 711 "$TMPDIR" # the account of a PostgreSQL gets in
"$@"
