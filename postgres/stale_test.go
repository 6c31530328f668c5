package postgres

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
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

// A damaged row of the log is reported as that, and the replica stays.
func TestDamagedRowBesideAReplica(t *testing.T) {
	dsn, dir := pgtest.DSN(t), t.TempDir()
	pool := newPool(t, dsn, nil)
	others := handle(t, pool, "s")
	tell(t, others, "before")
	o := Options{Store: "s", Unsafe: true, Replica: dir}
	e, err := New(background, pool, o)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	replicas, err := filepath.Glob(filepath.Join(dir, "*", "journal", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, replicas)
	was, err := os.Stat(replicas[0])
	require.NoError(t, err)

	tell(t, others, "after")
	_, err = pool.Exec(background, `UPDATE lineage_log SET data = '\x0102030405060708' WHERE n = (SELECT max(n) FROM lineage_log)`)
	require.NoError(t, err)
	_, err = New(background, pool, o)
	var damage *backend.CorruptError
	require.ErrorAs(t, err, &damage)
	require.Contains(t, damage.File, "of the log")
	is, err := os.Stat(replicas[0])
	require.NoError(t, err)
	require.True(t, os.SameFile(was, is))
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

// A turn that is cancelled just when it has locked the store leaves no lock behind.
func TestCancelledTurnLeavesNoLock(t *testing.T) {
	dsn, after := pgtest.DSN(t), &afterBatch{afterQuery{func() {}}}
	a := handle(t, newPool(t, dsn, func(c *pgxpool.Config) { c.ConnConfig.Tracer = after }), "s")
	b := handle(t, newPool(t, dsn, nil), "s")
	tell(t, b, "something")
	require.NoError(t, a.Sync(background))

	ctx, cancel := context.WithCancel(background)
	a.turn.Lock()
	after.do = cancel
	_, err := a.lock(ctx)
	after.do = func() {}
	a.turn.Unlock()
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

	_, commit := threadCommit()
	payload, _, err := new(structure.Encoder).Encode(commit)
	require.NoError(t, err)
	r := &row{first: e.head.next(), count: 1, id: newID()}
	r.data = appendCommit(nil, embedded.Sequenced{Number: r.first, ID: r.id, Payload: payload})
	require.NoError(t, r.seal())
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

// A replica that was closed in order to be removed, and that another process opened before that, stays.
func TestRemovedReplicaIsNotOpen(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	o := Options{Store: "s", Unsafe: true, Replica: t.TempDir()}
	e, err := New(background, pool, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	tell(t, e, "something")
	lock := filepath.Join(e.o.Replica, embedded.LockFile)
	was, err := os.Stat(lock)
	require.NoError(t, err)
	e.turn.Lock()
	err = e.drop(false)
	e.turn.Unlock()
	require.NoError(t, err)

	another, err := New(background, pool, o)
	require.NoError(t, err)
	require.ErrorIs(t, e.remove(), backend.ErrLocked)
	require.ErrorIs(t, RemoveReplicas(background, o.Replica), backend.ErrLocked)
	requireSound(t, another)
	require.DirExists(t, filepath.Join(e.o.Replica, "journal"))
	require.NoError(t, another.Close())

	require.NoError(t, e.remove())
	left, err := os.ReadDir(e.o.Replica)
	require.NoError(t, err)
	require.Len(t, left, 1)
	is, err := os.Stat(lock)
	require.NoError(t, err)
	require.True(t, os.SameFile(was, is), "who has opened the lock file and not yet locked it locks the same as others")
	require.Len(t, history(t, e), 2)
}

// What is known to be durable of a replica is not said of the next one.
func TestDurableOfADroppedReplica(t *testing.T) {
	dsn, after := pgtest.DSN(t), &afterBatch{afterQuery{func() {}}}
	e := handle(t, newPool(t, dsn, func(c *pgxpool.Config) { c.ConnConfig.Tracer = after }), "s")
	_, at := createThread(t, e, backend.Normal)
	after.do = func() {
		after.do = func() {}
		e.turn.Lock()
		defer e.turn.Unlock()
		require.NoError(t, e.drop(true))
	}
	flushed, err := e.flush(background)
	require.NoError(t, err)
	require.Equal(t, at, flushed)
	require.Zero(t, e.durable.Load().at())
}
