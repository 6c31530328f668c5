package bundle_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/structure"
)

// TestMeanwhile copies several bundles at a time from a store that is written to, into one that is
// written to and collected.
func TestMeanwhile(t *testing.T) {
	a, b := newStore(t), newStore(t)
	var mains []*lineage.Context
	for i := range 8 {
		_, c := newThread(t, a, fmt.Sprint("thread ", i))
		for k := range 50 {
			say(t, c, fmt.Sprint("said ", i, " ", k))
		}
		_, err := c.Extend(bg, lineage.Item{Kind: lineage.Asset, Filename: "f", Body: bytes.Repeat([]byte{byte(i), 1, 2, 3}, 40_000)})
		require.NoError(t, err)
		mains = append(mains, c)
	}
	_, own := newThread(t, b, "own")
	done := make(chan struct{})
	var meanwhile, imports sync.WaitGroup
	until := func(do func(i int) error) {
		meanwhile.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
				if err := do(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	until(func(i int) error { _, err := own.Extend(bg, lineage.User(fmt.Sprint("own ", i))); return err })
	until(func(i int) error { _, err := mains[i%8].Extend(bg, lineage.User(fmt.Sprint("more ", i))); return err })
	until(func(int) error {
		time.Sleep(30 * time.Millisecond)
		_, err := b.Collect(bg, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
		return err
	})
	for range 3 {
		imports.Go(func() {
			for range 3 {
				var w bytes.Buffer
				_, err := bundle.Write(bg, a, &w, bundle.WriteOptions{})
				if err == nil {
					_, err = bundle.Import(bg, b, bytes.NewReader(w.Bytes()), bundle.ImportOptions{})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	imports.Wait()
	close(done)
	meanwhile.Wait()
	last := writeBundle(t, a, bundle.WriteOptions{})
	bring(t, b, last)
	bringAgain(t, b, last)
	for _, c := range mains {
		require.Equal(t, texts(t, c), texts(t, on(t, b, c.ID())))
	}
	requireSound(t, b)
}

// beforeContexts calls meant before the first commit that states a context.
type beforeContexts struct {
	backend.Engine
	meant func()
}

func (b *beforeContexts) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if meant := b.meant; meant != nil && slices.ContainsFunc(c.Records, func(r structure.Record) bool { return r.Kind() == structure.KindContext }) {
		b.meant = nil
		meant()
	}
	return b.Engine.Apply(ctx, c, o)
}

// An import does not undo changes that another writer made to a context after the import read it.
func TestImportedTwiceAtOnce(t *testing.T) {
	a := newStore(t)
	_, c := newThread(t, a, "thread")
	say(t, c, "one")
	both := writeBundle(t, a, bundle.WriteOptions{})

	in, err := lineage.Open(bg, t.TempDir(), lineage.Options{})
	require.NoError(t, err)
	engine := &beforeContexts{Engine: write.Of(in).Engine()}
	b := lineage.New(engine)
	defer func() { require.NoError(t, b.Close()) }()
	var here *lineage.Context
	engine.meant = func() {
		bring(t, b, both)
		here, err = b.Context(bg, c.ID())
		require.NoError(t, err)
		say(t, here, "said here")
	}
	bring(t, b, both)
	require.Equal(t, []string{"one", "said here"}, texts(t, here))
}

// A bundle whose state expires says what to do. An inventory is made of the next state.
func TestExpiredState(t *testing.T) {
	a := newStore(t)
	_, c := newThread(t, a, "thread")
	say(t, c, "one")
	want, err := bundle.Take(bg, a)
	require.NoError(t, err)
	engine := &backendtest.Expiring{Engine: write.Of(a).Engine()}
	expiring := lineage.New(engine)
	engine.Left.Store(1)
	_, err = bundle.Write(bg, expiring, &bytes.Buffer{}, bundle.WriteOptions{})
	require.ErrorIs(t, err, lineage.ErrExpired)
	require.ErrorContains(t, err, "write it again")
	engine.Left.Store(2)
	got, err := bundle.Take(bg, expiring)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.EqualValues(t, -1, engine.Left.Load())
}
