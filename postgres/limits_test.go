package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/sqladapter"
)

// A client stops while it holds the store. The server ends its transaction, and others go on.
func TestStoppedClient(t *testing.T) {
	former := idleTime
	idleTime = 100 * time.Millisecond
	defer func() { idleTime = former }()
	dsn := pgtest.DSN(t)
	a, b := handle(t, newPool(t, dsn, nil), "s"), handle(t, newPool(t, dsn, nil), "s")
	createThread(t, a, backend.Full)
	a.writing.Lock()
	_, held, err := a.lock(background, nil)
	a.writing.Unlock()
	require.NoError(t, err)
	createThread(t, b, backend.Full)
	held.rollback()
	createThread(t, a, backend.Full)
	require.Len(t, history(t, b), 3)
	requireSound(t, a)
}

// Every transaction that writes waits for locks for a limited time.
func TestTransactionsHaveLimits(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	_, err := pool.Exec(background, `CREATE FUNCTION limited() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF current_setting('lock_timeout') = '0' THEN
    RAISE EXCEPTION 'no limit of %', TG_TABLE_NAME;
  END IF;
  RETURN COALESCE(NEW, OLD);
END $$`, exec)
	require.NoError(t, err)
	for _, table := range []string{"lineage_log", "lineage_store", "lineage_durable", "lineage_collection", "lineage_entry", "lineage_head", "lineage_former"} {
		_, err := pool.Exec(background, `CREATE TRIGGER limited BEFORE INSERT OR UPDATE OR DELETE ON `+table+` FOR EACH ROW EXECUTE FUNCTION limited()`, exec)
		require.NoError(t, err)
	}
	for _, contended := range []int{0, 2} {
		e.writing.Lock()
		e.contended = contended
		e.writing.Unlock()
		createThread(t, e, backend.Normal)
		createThread(t, e, backend.Full)
	}
	require.NoError(t, e.Sync(background))
	gone := tell(t, e, secret)
	require.NoError(t, gone.Delete(background))
	_, err = e.Collect(background, all)
	require.NoError(t, err)
	require.Empty(t, rowsWith(t, pool, secret))
	requireSound(t, e)
	var left string
	require.NoError(t, pool.QueryRow(background, `SELECT current_setting('lock_timeout') || current_setting('idle_in_transaction_session_timeout')`, exec).Scan(&left))
	require.Equal(t, "00", left, "a pooler gives the connection to others")
}

// While a dump is restored, the tables are there before their keys.
func TestTablesWithoutKeys(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	createThread(t, e, backend.Normal)
	drop := func(statement string) {
		_, err := pool.Exec(background, statement, exec)
		require.NoError(t, err)
	}
	drop(`ALTER TABLE lineage_durable DROP CONSTRAINT lineage_durable_pkey`)
	require.ErrorIs(t, e.Sync(background), ErrRestoring)
	_, err := New(background, pool, Options{Store: "s", Unsafe: true})
	require.ErrorIs(t, err, ErrRestoring)
	drop(`ALTER TABLE lineage_durable ADD PRIMARY KEY (store, slot)`)
	for _, key := range []string{"lineage_log", "lineage_store", "lineage_collection", "lineage_entry", "lineage_head", "lineage_former"} {
		drop(`ALTER TABLE ` + key + ` RENAME CONSTRAINT ` + key + `_pkey TO was; ALTER TABLE ` + key + ` DROP CONSTRAINT was`)
		_, err := New(background, pool, Options{Store: "s", Unsafe: true})
		require.ErrorIs(t, err, ErrRestoring)
		columns := map[string]string{"lineage_log": "store, n", "lineage_entry": "store, epoch, key, age", "lineage_head": "store, epoch", "lineage_former": "store, epoch, n, part"}[key]
		if columns == "" {
			columns = "store"
		}
		drop(`ALTER TABLE ` + key + ` ADD PRIMARY KEY (` + columns + `)`)
	}
	drop(`DELETE FROM lineage_schema`)
	_, err = New(background, pool, Options{Store: "s", Unsafe: true})
	require.ErrorIs(t, err, ErrRestoring)
	drop(fmt.Sprintf(`INSERT INTO lineage_schema (version) VALUES (%d)`, len(migrations)))
	createThread(t, e, backend.Full)
	requireSound(t, handle(t, pool, "s"))
}

// An operation that patience ends, and not its caller, is ErrBusy.
func TestPatienceEnds(t *testing.T) {
	former := patience
	patience = 10 * time.Millisecond
	defer func() { patience = former }()
	waits := func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("timeout: %w", ctx.Err()) }
	require.ErrorIs(t, withRetry(background, waits), sqladapter.ErrBusy)
	ended, cancel := context.WithTimeout(background, time.Millisecond)
	defer cancel()
	<-ended.Done()
	err := withRetry(ended, waits)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, sqladapter.ErrBusy)
}

// A commit whose statement the server cancels, because it took too long, was not applied.
func TestCommitThatTakesTooLong(t *testing.T) {
	former := patience
	defer func() { patience = former }()
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	createThread(t, e, backend.Full)
	_, err := pool.Exec(background, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE 'canceling statement due to statement timeout' USING ERRCODE = '`+queryCanceled+`'; END $$;
CREATE TRIGGER slow BEFORE INSERT ON lineage_log FOR EACH ROW EXECUTE FUNCTION slow()`, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	for _, contended := range []int{0, mostContended} {
		e.writing.Lock()
		e.contended = contended
		e.writing.Unlock()
		patience = 50 * time.Millisecond
		_, commit := threadCommit()
		_, err := e.Apply(background, commit, backend.Options{})
		patience = former
		require.ErrorIs(t, err, sqladapter.ErrBusy)
		require.NotErrorIs(t, err, backend.ErrUncertain)
	}
	_, err = pool.Exec(background, `DROP TRIGGER slow ON lineage_log`)
	require.NoError(t, err)
	createThread(t, e, backend.Full)
	require.Len(t, history(t, e), 2)
	requireSound(t, e)
}

// The server answers before the client stops waiting for it.
func TestServerAnswersFirst(t *testing.T) {
	for _, most := range []time.Duration{time.Hour, time.Minute, 10 * time.Second, time.Second, 10 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(background, most)
		limit := answerTime(ctx)
		require.Positive(t, limit)
		require.LessOrEqual(t, limit, most-min(most/2, time.Second))
		cancel()
	}
}
