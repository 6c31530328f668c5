#!/bin/bash
# Makes sure that there is a PostgreSQL for the tests to start, and a PgBouncer to start before it: says nothing and does
# nothing where both are installed or LINEAGE_TEST_POSTGRES names a server, else installs the Debian packages, which needs
# root. Whether tests may go without is up to them: they fail where CI=true, and else say that they were skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ -n ${LINEAGE_TEST_POSTGRES:-} ]]; then exit 0; fi
missing=(postgresql pgbouncer)
if command -v initdb >/dev/null; then missing=("${missing[@]/postgresql/}"); fi
for bin in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/local/pgsql/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin; do
  if [[ -x $bin/initdb ]]; then missing=("${missing[@]/postgresql/}"); fi
done
if command -v pgbouncer >/dev/null || [[ -x /usr/sbin/pgbouncer ]]; then missing=("${missing[@]/pgbouncer/}"); fi
read -ra missing <<<"${missing[*]}"
if [[ ${#missing[@]} == 0 ]]; then exit 0; fi
if ! command -v apt-get >/dev/null || [[ $(id -u) != 0 ]]; then
  echo "postgres.sh: not installed: ${missing[*]}; tests with it cannot run" >&2
  exit 0
fi

# The servers are for the tests to start: keep the packages from starting any.
install -d /etc/postgresql-common/createcluster.d
echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/lineage.conf
if [[ ! -e /usr/sbin/policy-rc.d ]]; then
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod +x /usr/sbin/policy-rc.d
fi

export DEBIAN_FRONTEND=noninteractive
install="apt-get install -y --no-install-recommends ${missing[*]}"
scripts/step.sh "installing ${missing[*]}" scripts/retry.sh bash -c "$install || { apt-get update && $install; }" ||
  echo "postgres.sh: could not be installed: ${missing[*]}; tests with it cannot run" >&2
