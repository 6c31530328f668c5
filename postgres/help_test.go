package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// newPool returns connections to a database, as Open makes them.
func newPool(t testing.TB, dsn string, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	require.NoError(t, err)
	config.ConnConfig.DefaultQueryExecMode, config.ConnConfig.OnNotice = exec, noteCancelledWait
	if change != nil {
		change(config)
	}
	pool, err := pgxpool.NewWithConfig(background, config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// handle opens a store as another process would.
func handle(t testing.TB, pool *pgxpool.Pool, store string) *Engine {
	t.Helper()
	e, err := New(background, pool, Options{Store: store, Unsafe: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// commitAndWait commits a batch, waits until it is answered, and returns what did not fit.
func (e *Engine) commitAndWait(batch []*pending) []*pending {
	all := slices.Clone(batch)
	rest := e.commitBatch(batch)
	for _, p := range all {
		if !slices.Contains(rest, p) {
			<-p.done
		}
	}
	return rest
}

// folding limits what is unfolded.
func folding(t testing.TB, most int) {
	was := mostUnfolded
	mostUnfolded = most
	t.Cleanup(func() { mostUnfolded = was })
}

func threadCommit() (structure.ThreadID, *structure.Commit) {
	id := structure.NewID[structure.ThreadID]()
	return id, &structure.Commit{Records: []structure.Record{&structure.Thread{ID: id}}}
}

// createThread makes a thread, and returns its commit.
func createThread(t testing.TB, e *Engine, d backend.Durability) (structure.ThreadID, backend.Cursor) {
	t.Helper()
	id, c := threadCommit()
	r, err := e.Apply(background, c, backend.Options{Durability: d})
	require.NoError(t, err)
	return id, r.Cursor
}

// history returns the commits of a store, one line each.
func history(t testing.TB, e *Engine) (lines []string) {
	t.Helper()
	for c, err := range e.Feed(background, backend.Cursor{}) {
		require.NoError(t, err)
		var encoder structure.Encoder
		payload, _, err := encoder.Encode(c)
		require.NoError(t, err)
		lines = append(lines, fmt.Sprintf("%d %x %x", c.Number, c.ID, payload))
	}
	return lines
}

func requireSound(t testing.TB, e *Engine) {
	t.Helper()
	for f, err := range e.Verify(background, backend.VerifyOptions{Deep: true}) {
		require.NoError(t, err)
		require.Fail(t, "finding", f.String())
	}
}

// counter counts one after another, across processes: each adds a run's next span.
type counter struct {
	run   structure.RunID
	block *structure.Block
}

// begin makes the run.
func beginCounter(t testing.TB, e *Engine) *counter {
	t.Helper()
	c := &counter{run: structure.NewID[structure.RunID](), block: textBlock("said")}
	_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{c.block, &structure.Run{ID: c.run}}}, backend.Options{})
	require.NoError(t, err)
	return c
}

// add adds a span after the last. It is ErrConflict when another process did so.
func (c *counter) add(ctx context.Context, e *Engine, d backend.Durability) (uint64, error) {
	last, err := e.Last(ctx, c.run)
	if err != nil {
		return 0, err
	}
	next := structure.SpanRef{Run: c.run, Seq: last.Seq + 1}
	_, err = e.Apply(ctx, &structure.Commit{Records: []structure.Record{
		&structure.Span{Ref: next, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: c.block.ID}}},
	}}, backend.Options{Durability: d})
	return next.Seq, err
}

// parallel does something in several goroutines at once.
func parallel(n int, do func(i int)) {
	var going sync.WaitGroup
	for i := range n {
		going.Go(func() { do(i) })
	}
	going.Wait()
}

// subject returns the id of a thread record.
func subject(r structure.Record) string {
	if t, ok := r.(*structure.Thread); ok {
		return t.ID.String()
	}
	return fmt.Sprintf("%T", r)
}
