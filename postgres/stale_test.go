package postgres

import (
	"bytes"
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Content that a collection removed is written again by a process that has not noticed the collection.
func TestKnownContentAfterACollection(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	a, b := handle(t, pool, "s"), handle(t, pool, "s")
	tell(t, a, "something")
	put := func() lineage.ContentID {
		block, _, err := lineage.New(a).Put(background, bytes.NewReader([]byte(secret)), lineage.BlockOptions{})
		require.NoError(t, err)
		return block.ID
	}
	id := put()
	_, err := b.Collect(background, all)
	require.NoError(t, err)
	require.Equal(t, id, put())
	for _, e := range []*Engine{a, b} {
		has, err := e.Has(background, []lineage.ContentID{id})
		require.NoError(t, err)
		require.Equal(t, []bool{true}, has)
	}
}

// afterQuery calls a function when a query was answered.
type afterQuery struct{ do func() }

func (*afterQuery) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (a *afterQuery) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) { a.do() }

// afterBatch calls a function when a batch was answered.
type afterBatch struct{ afterQuery }

func (*afterBatch) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (*afterBatch) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (*afterBatch) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (a *afterBatch) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)   { a.do() }

// A batch that is cancelled just when it has locked the store leaves no lock behind.
func TestCancelledBatchLeavesNoLock(t *testing.T) {
	dsn, after := pgtest.DSN(t), &afterBatch{afterQuery{func() {}}}
	a := handle(t, newPool(t, dsn, func(c *pgxpool.Config) { c.ConnConfig.Tracer = after }), "s")
	b := handle(t, newPool(t, dsn, nil), "s")
	tell(t, b, "something")
	require.NoError(t, a.Sync(background))

	ctx, cancel := context.WithCancel(background)
	a.writing.Lock()
	after.do = cancel
	_, _, err := a.lock(ctx, nil)
	after.do = func() {}
	a.writing.Unlock()
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, a.log.pool.Stat().AcquiredConns())
	tell(t, b, "still writable")
}

// A row is not given up while an earlier attempt to write it is under way: the later one waits for it, also when
// another cannot be serialised.
func TestAttemptUnderWay(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), func(c *pgxpool.Config) { c.MaxConns = 10 })
	e := handle(t, pool, "s")
	createThread(t, e, backend.Full)
	do := func(statement string) {
		_, err := pool.Exec(background, statement, exec)
		require.NoError(t, err)
	}
	do(`CREATE SEQUENCE attempts`)
	do(`CREATE TABLE gate ()`)
	do(`CREATE FUNCTION attempt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  CASE nextval('attempts')
    WHEN 1 THEN LOCK TABLE gate IN SHARE MODE;
    WHEN 2 THEN RAISE EXCEPTION 'for the test' USING ERRCODE = '40001';
    ELSE NULL;
  END CASE;
  RETURN NEW;
END $$`)
	do(`CREATE TRIGGER attempt BEFORE INSERT ON lineage_log FOR EACH ROW EXECUTE FUNCTION attempt()`)
	gate, err := pool.Begin(background)
	require.NoError(t, err)
	defer gate.Rollback(background) //nolint:errcheck // it may have been rolled back
	_, err = gate.Exec(background, `LOCK TABLE gate`, exec)
	require.NoError(t, err)

	r := madeRow(t, e)
	first := make(chan error, 1)
	go func() { first <- e.log.append(background, e.head, r, backend.Full) }()
	eventually(t, pool, `SELECT count(*) = 1 FROM pg_locks WHERE NOT granted`)
	later := make(chan error, 1)
	go func() { later <- e.log.resolve(background, e.head, r, backend.Full, errCut) }()
	eventually(t, pool, `SELECT count(*) = 2 FROM pg_locks WHERE NOT granted`)
	require.NoError(t, gate.Rollback(background))
	require.NoError(t, <-first)
	require.NoError(t, <-later)
	require.Len(t, history(t, e), 2)
	requireSound(t, e)
}

// madeRow returns a row with a commit that may follow the latest state.
func madeRow(t testing.TB, e *Engine) *logRow {
	t.Helper()
	at, err := e.latest(background, need{})
	require.NoError(t, err)
	j := newJudging(&e.log.clock)
	j.begin(at)
	j.row = &logRow{first: at.state.next(), id: newID()}
	e.judging = j
	_, commit := threadCommit()
	receipt, err := e.judge(&pending{ctx: background, commit: commit})
	require.NoError(t, err)
	require.Equal(t, j.row.first, receipt.Number)
	require.NoError(t, j.seal())
	e.judging, e.warm = newJudging(&e.log.clock), nil
	return j.row
}
