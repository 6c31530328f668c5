#!/bin/bash
# Makes sure that there is a PostgreSQL for the tests to start: says nothing and does nothing where one is installed or
# LINEAGE_TEST_POSTGRES names a server, else installs the Debian package, which needs root. Whether tests may go without is
# up to them: they fail where CI=true, and else say that they were skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

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
install='apt-get install -y --no-install-recommends postgresql'
scripts/step.sh 'installing PostgreSQL' bash -c "$install || { apt-get update && $install; }" ||
  echo "postgres.sh: PostgreSQL could not be installed; tests against it cannot run" >&2
