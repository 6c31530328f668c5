package search_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/search"
)

var errStop = errors.New("told to stop")

// endsAfter is a context that ends when it is looked at for the nth time.
type endsAfter struct {
	context.Context
	left atomic.Int64
	end  context.CancelCauseFunc
}

func newEndsAfter(n int64) *endsAfter {
	c := new(endsAfter)
	c.Context, c.end = context.WithCancelCause(bg)
	c.left.Store(n)
	return c
}

func (c *endsAfter) look() {
	if c.left.Add(-1) == 0 {
		c.end(errStop)
	}
}

func (c *endsAfter) Err() error {
	c.look()
	return c.Context.Err()
}

func (c *endsAfter) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

// TestEndsAnywhere ends the context of a first search at many places. The error is always why it ended,
// and the next search finds everything.
func TestEndsAnywhere(t *testing.T) {
	dir := t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	defer store.Close()
	for i := range 40 {
		c, err := store.NewContext(bg, lineage.ContextOptions{})
		require.NoError(t, err)
		_, err = c.Extend(bg, lineage.User(fmt.Sprint("word ", i)))
		require.NoError(t, err)
	}
	search40 := func(ctx context.Context) (err error) {
		x, err := search.Open(ctx, store, dir, search.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, x.Close()) }()
		hits, err := x.Search(ctx, search.Query{Text: "word", Limit: 100})
		if err == nil {
			require.Len(t, hits, 40)
		}
		return err
	}
	stopped := 0
	for n := int64(1); ; n += 1 + n/8 {
		require.NoError(t, search.Remove(dir))
		ctx := newEndsAfter(n)
		err := search40(ctx)
		if ctx.left.Load() > 0 {
			require.NoError(t, err)
			break
		}
		ctx.end(nil)
		if err != nil { // else it ended too late to be noticed
			require.ErrorIs(t, err, errStop)
			stopped++
		}
		require.NoError(t, search40(bg))
	}
	require.Greater(t, stopped, 10)
}
