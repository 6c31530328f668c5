#!/usr/bin/env bash
# Usage: modules.sh FOLDER...
# Fetches the Go modules that the packages, tests and tools of the module in each folder need, and those that a program
# outside of the repository needs, where any are missing. What cannot be fetched is said; a command that needs it fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT
cat >"$program/go.mod" <<END
module example.com/program

go $(go list -m -f '{{.GoVersion}}')

replace github.com/lineage-store/lineage => $PWD
END
cat >"$program/main.go" <<'END'
package main

import (
	_ "github.com/lineage-store/lineage/lineage"
	_ "github.com/lineage-store/lineage/sqladapter/sqlite"
)

func main() {}
END

# list and tidy look for all packages, and fetch the modules that are not cached.
list='go -C "$1" list -deps -test ./... >/dev/null && go -C "$1" list -deps tool >/dev/null'
tidy='GOSUMDB=off GOWORK=off go -C "$1" mod tidy'
fetch() {
	scripts/step.sh "fetching the modules of $1" scripts/retry.sh bash -c "$2" go "$3" ||
		echo "modules.sh: modules of $1 could not be fetched; what needs them fails" >&2
}
for folder in "$@"; do
	GOPROXY=off bash -c "$list" go "$folder" &>/dev/null || fetch "$folder" "$list" "$folder"
done
GOPROXY=file://$(go env GOMODCACHE)/cache/download bash -c "$tidy" go "$program" &>/dev/null || fetch "a program" "$tidy" "$program"
