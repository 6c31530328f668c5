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

// afterBatch calls a function when a batch has succeeded.
type afterBatch struct{ do func() }

func (*afterBatch) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (*afterBatch) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (*afterBatch) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (*afterBatch) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (a *afterBatch) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)   { a.do() }

// A turn that is cancelled just when it has locked the store leaves no lock behind.
func TestCancelledTurnLeavesNoLock(t *testing.T) {
	dsn, after := pgtest.DSN(t), &afterBatch{func() {}}
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
