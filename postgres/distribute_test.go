package postgres

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
)

// extension puts the catalog and the functions of an extension that distributes tables into a database. It only notes which
// are distributed; answer is what its servers say of their settings.
func extension(t *testing.T, pool *pgxpool.Pool, answer string) {
	t.Helper()
	for _, s := range []string{
		`SET allow_system_table_mods = on; CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass PRIMARY KEY, "with" text); CREATE TABLE pg_catalog.pg_dist_node (nodeid integer, nodename text, nodeport integer)`,
		`INSERT INTO pg_dist_node VALUES (2, 'second', 5432)`,
		`CREATE FUNCTION create_distributed_table(name regclass, col text, colocate_with text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = name) THEN RAISE 'table is already distributed' USING ERRCODE = '42P16'; END IF;
  INSERT INTO pg_dist_partition VALUES (name, colocate_with); END $$`,
		fmt.Sprintf(`CREATE FUNCTION run_command_on_all_nodes(command text) RETURNS TABLE (nodeid integer, success boolean, result text) LANGUAGE plpgsql AS $$ DECLARE own text; BEGIN
  EXECUTE command INTO own; RETURN QUERY VALUES (1, own IS NOT NULL, 'on on'), (2, true, '%s'); END $$`, answer),
	} {
		_, err := pool.Exec(background, s)
		require.NoError(t, err, s)
	}
}

// distributed returns the tables that are distributed, and those that the first one is colocated with.
func distributed(t *testing.T, pool *pgxpool.Pool) (names, with []string) {
	t.Helper()
	require.NoError(t, pool.QueryRow(background, `SELECT array_agg(logicalrelid::text ORDER BY logicalrelid::text), array_agg(DISTINCT "with" ORDER BY "with") FROM pg_dist_partition`).Scan(&names, &with))
	return names, with
}

// safely opens a store as if the server of the tests had fsync=on.
func safely(t *testing.T, pool *pgxpool.Pool, o Options) error {
	t.Helper()
	l := &log{pool: pool, store: keyOf(o.Store)}
	for {
		db, err := l.look(background)
		require.NoError(t, err)
		db.fsync = "on"
		if adopted, err := l.adopt(background, db, o); adopted || err != nil {
			return err
		}
	}
}

func TestDistribute(t *testing.T) {
	dsn := pgtest.DSN(t)
	pool := newPool(t, dsn, nil)
	_, err := New(background, pool, Options{Store: "s", Distribute: true, Unsafe: true})
	require.ErrorIs(t, err, errNoExtension)
	handle(t, pool, "s")
	require.NoError(t, safely(t, pool, Options{Store: "s"}))
	extension(t, pool, "on remote_apply")
	require.NoError(t, safely(t, pool, Options{Store: "s"}), "they are not distributed")

	// Many at once; each finds them distributed.
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			e, err := New(background, pool, Options{Store: "s", Distribute: true, Unsafe: true})
			require.NoError(t, err)
			require.NoError(t, e.Close())
		})
	}
	all.Wait()
	names, with := distributed(t, pool)
	require.ElementsMatch(t, tables, names)
	require.Equal(t, []string{"lineage_store", "none"}, with)
	require.NoError(t, safely(t, pool, Options{Store: "s"}))
	createThread(t, handle(t, pool, "s"), backend.Full)

	// A table that a migration adds is distributed, too.
	_, err = pool.Exec(background, `DELETE FROM pg_dist_partition WHERE logicalrelid = 'lineage_head'::regclass`)
	require.NoError(t, err)
	handle(t, pool, "other")
	names, _ = distributed(t, pool)
	require.ElementsMatch(t, tables, names)
}

// All tables of stores have their keys, and are those of the list.
func TestTables(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	handle(t, pool, "s")
	var names []string
	require.NoError(t, pool.QueryRow(background, `SELECT array_agg(relname::text) FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid WHERE relkind = 'r' AND attname = 'store' AND attnum > 0`).Scan(&names))
	require.ElementsMatch(t, tables, names)
}

// A store on servers that lose commits, or that cannot be asked, is refused.
func TestUnsafeServers(t *testing.T) {
	for answer, want := range map[string]string{"on off": "second:5432, where they are: on off", "off on": "off on", "connection refused": "connection refused", "": "second:5432, where they are: unknown"} {
		pool := newPool(t, pgtest.DSN(t), nil)
		extension(t, pool, answer)
		e, err := New(background, pool, Options{Store: "s", Distribute: true, Unsafe: true})
		require.NoError(t, err)
		require.NoError(t, e.Close())
		err = safely(t, pool, Options{Store: "s"})
		require.ErrorIs(t, err, errUnsafeServer)
		require.ErrorContains(t, err, want)
		_, err = pool.Exec(background, `DROP FUNCTION run_command_on_all_nodes`)
		require.NoError(t, err)
		require.ErrorIs(t, safely(t, pool, Options{Store: "s"}), errDistributed)
		handle(t, pool, "s") // of a test
	}
}
