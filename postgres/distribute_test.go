package postgres

import (
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
)

// extension puts the catalog and the function of an extension that distributes tables into a database. It only notes which
// are distributed.
func extension(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, s := range []string{
		`SET allow_system_table_mods = on; CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass PRIMARY KEY, "with" text)`,
		`CREATE FUNCTION create_distributed_table(name regclass, col text, colocate_with text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = name) THEN RAISE 'table is already distributed' USING ERRCODE = '42P16'; END IF;
  INSERT INTO pg_dist_partition VALUES (name, colocate_with); END $$`,
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

// safely opens a store as if the server of the tests were safe.
func safely(t *testing.T, pool *pgxpool.Pool, o Options) error {
	t.Helper()
	l := &log{pool: pool, store: keyOf(o.Store)}
	for {
		db, err := l.look(background)
		require.NoError(t, err)
		db.fsync, db.server.fsync, db.server.synchronous = "on", "on", "on"
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
	extension(t, pool)
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

// Distributing tables may take longer than other operations.
func TestDistributingTakesLong(t *testing.T) {
	campaign.Long(t)
	former := patience
	patience = 3 * time.Second
	defer func() { patience = former }()
	pool := newPool(t, pgtest.DSN(t), nil)
	extension(t, pool)
	_, err := pool.Exec(background, `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END $$`)
	require.NoError(t, err)
	_, err = pool.Exec(background, `SET allow_system_table_mods = on; CREATE TRIGGER wait BEFORE INSERT ON pg_catalog.pg_dist_partition FOR EACH ROW EXECUTE FUNCTION wait()`, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	e, err := New(background, pool, Options{Store: "s", Distribute: true, Unsafe: true})
	require.NoError(t, err)
	createThread(t, e, backend.Full)
	require.NoError(t, e.Close())
	names, _ := distributed(t, pool)
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

// A distributed store is refused if the server that has it loses commits. Other servers are not asked.
func TestUnsafeServers(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	extension(t, pool)
	handle(t, pool, "plain")
	l := &log{pool: pool, store: keyOf("plain")}
	db, err := l.look(background)
	require.NoError(t, err)
	db.fsync, db.server.synchronous = "on", "off"
	_, err = l.adopt(background, db, Options{Store: "plain"})
	require.NoError(t, err, "a process sets the durability of the server that it is connected to")

	e, err := New(background, pool, Options{Store: "s", Distribute: true, Unsafe: true})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	for _, setting := range []string{"on", "local", "remote_write", "remote_apply", "off"} {
		_, err := pool.Exec(background, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = `+setting+`', current_database()); END $$`)
		require.NoError(t, err)
		l := &log{pool: newPool(t, pool.Config().ConnString(), nil), store: keyOf("s")}
		for _, fsync := range []string{"on", "off"} {
			db, err := l.look(background)
			require.NoError(t, err)
			require.Equal(t, setting, db.server.synchronous)
			require.Equal(t, db.fsync, db.server.fsync)
			db.fsync, db.server.fsync = "on", fsync
			adopted, err := l.adopt(background, db, Options{Store: "s"})
			require.True(t, adopted)
			if fsync == "on" && setting != "off" {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, errUnsafeServer)
			require.ErrorContains(t, err, db.server.address+" has the store, and there they are "+fsync+" and "+setting)
			_, err = l.adopt(background, db, Options{Store: "s", Unsafe: true})
			require.NoError(t, err)
		}
	}
}
