#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (default 30s), one after the other.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# go test -list prints a package's targets, then the line that names the package.
targets=$(go test -list '^Fuzz' ./... | awk '
	/^Fuzz/ { names[++n] = $1 }
	/^ok/   { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }')

if [[ -z $targets ]]; then
	echo "no fuzz targets found" >&2
	exit 1
fi

while read -r package name; do
	echo "== $package $name"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-30s}" "$package" </dev/null
done <<<"$targets"
