#!/bin/bash
# Makes sure that there is a PostgreSQL for the tests to start: says nothing and does nothing where one is installed or
# LINEAGE_TEST_POSTGRES names a server, else installs the Debian package, which needs root. Whether tests may go without is
# up to them: they fail where CI=true, and else say that they were skipped.
set -euo pipefail

if [[ -n ${LINEAGE_TEST_POSTGRES:-} ]] || command -v initdb >/dev/null; then exit 0; fi
for bin in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/local/pgsql/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin; do
  if [[ -x $bin/initdb ]]; then exit 0; fi
done
if ! command -v apt-get >/dev/null || [[ $(id -u) != 0 ]]; then
  echo "postgres.sh: PostgreSQL is not installed; tests against it cannot run" >&2
  exit 0
fi

# The server is for the tests to start: keep the package from making and starting one of its own.
install -d /etc/postgresql-common/createcluster.d
echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/lineage.conf

export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get install -y --no-install-recommends postgresql ||
  { apt-get update && apt-get install -y --no-install-recommends postgresql; }; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "postgres.sh: PostgreSQL could not be installed; tests against it cannot run" >&2
fi
