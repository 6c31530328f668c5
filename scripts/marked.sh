#!/usr/bin/env bash
# Usage: marked.sh packages WORD | marked.sh tests WORD
# Prints the packages of this module with a test file that has the line //test:WORD, or a pattern for `go test -run` of
# the tests below such a line. contributing.md lists the words.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
files=$(grep -rl --include='*_test.go' --exclude-dir=bench --exclude-dir=adapters --exclude-dir=sdktest --exclude-dir=tools "^//test:$2\$" . || true)
case $1 in
packages) for f in $files; do dirname "$f"; done | sort -u ;;
tests)
	names=$(for f in $files; do awk -v mark="//test:$2" 'marked && /^func Test/ { sub(/^func /, ""); sub(/\(.*/, ""); print } { marked = $0 == mark }' "$f"; done | sort -u | paste -sd '|')
	printf '^(%s)$\n' "$names"
	;;
*)
	sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" >&2
	exit 2
	;;
esac
