package search_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/sqlitefile"
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

// TestEndsWhileOthersWrite ends searches that wait for another process that writes to the index, and
// for another goroutine that updates it.
func TestEndsWhileOthersWrite(t *testing.T) {
	was := search.SetPatience(time.Hour)
	defer search.SetPatience(was)
	dir := t.TempDir()
	store, x := open(t, dir)
	defer store.Close()
	defer x.Close()
	c, err := store.NewContext(bg, lineage.ContextOptions{})
	require.NoError(t, err)
	_, err = c.Extend(bg, lineage.User("word"))
	require.NoError(t, err)
	other, err := sql.Open("sqlite", sqlitefile.DSN(filepath.Join(dir, search.FileName), "immediate"))
	require.NoError(t, err)
	defer other.Close()
	tx, err := other.BeginTx(bg, nil)
	require.NoError(t, err)
	ctx := newEndsAfter(200) // one that waits looks at its context again and again
	results := make(chan error)
	for range 2 {
		go func() {
			_, err := x.Search(ctx, search.Query{Text: "word"})
			results <- err
		}()
	}
	require.ErrorIs(t, <-results, errStop)
	require.ErrorIs(t, <-results, errStop)
	go func() {
		_, err := x.Search(bg, search.Query{Text: "word"})
		results <- err
	}()
	require.NoError(t, tx.Rollback())
	require.NoError(t, <-results)
	require.Equal(t, []string{"<mark>word</mark>"}, found(t, x, "word"))
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
		files, err := filepath.Glob(filepath.Join(dir, search.FileName+"*"))
		require.NoError(t, err)
		for _, file := range files {
			require.NoError(t, os.Remove(file))
		}
		ctx := newEndsAfter(n)
		err = search40(ctx)
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
