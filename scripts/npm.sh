#!/bin/bash
# Functions for scripts that fetch the npm package $package into $dir for tests. They are sourced with the name of the
# variable that names another place of it: if that is set, or the package is there, the script is done.
if [[ -n ${!1:-} || -f $dir/complete ]]; then exit 0; fi

# without says why the package cannot be had, and ends the script.
without() {
  echo "${0##*/}: $1; tests with $package will be skipped" >&2
  exit 0
}
command -v npm >/dev/null || without "there is no npm"
major=$(node --version 2>/dev/null | sed -n 's/^v\([0-9]*\).*/\1/p')
major=${major:-0}

# fetch installs packages.
fetch() {
  mkdir -p "$dir"
  echo '{"private":true}' >"$dir/package.json"
  scripts/step.sh "fetching $package" npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --no-save --loglevel=error "$@" ||
    without "it could not be fetched"
  touch "$dir/complete"
}
