#!/usr/bin/env bash
# Usage: release.sh DIR
# Builds archives of the program for each platform into DIR, with their SHA-256 in SHA256SUMS. The version is that of the
# tag of the commit. The same commit and version of Go give the same bytes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$1
[[ -z $(git status --porcelain) ]] || { echo 'there are changes that are not committed' >&2; exit 1; }
version=$(git describe --tags --always)
at=$(git log -1 --format=%ct)
mkdir -p "$out"
out=$(cd "$out" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do
	os=${platform%/*} arch=${platform#*/}
	name=lineage-$version-$os-$arch
	suffix=$([[ $os == windows ]] && echo .exe || true)
	mkdir "$build/$name"
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=true -ldflags '-s -w' -o "$build/$name/lineage$suffix" ./cmd/lineage
	cp LICENSE README.md CHANGELOG.md "$build/$name/"
	tar -C "$build" --sort=name --mtime="@$at" --owner=0 --group=0 --numeric-owner -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
	echo "$name.tar.gz" >&2
done
(cd "$out" && sha256sum "lineage-$version-"*.tar.gz >SHA256SUMS)
