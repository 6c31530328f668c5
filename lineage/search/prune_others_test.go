package search_test

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/search/searchtest"
	"github.com/lineage-store/lineage/structure"
)

// smallParts lets pruning work in small transactions until the returned function is called.
func smallParts(rows int) (restore func()) {
	was := derivedfile.StepRows
	derivedfile.StepRows = rows
	return func() { derivedfile.StepRows, derivedfile.BetweenParts = was, nil }
}

// Between the transactions in which an index is pruned, the store changes, and two handles search and bring the index up to date. Nothing
// that is seen gets lost, and nothing is left that refers to what is gone. When nobody disturbs, the index is then like one that is built
// at once.
func TestOthersWriteBetweenPartsOfPruning(t *testing.T) {
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	kept := 0
	rapid.Check(t, func(r *rapid.T) {
		defer smallParts(rapid.SampledFrom([]int{1, 3, 1000}).Draw(r, "rows"))()
		searched.WindowLimit = rapid.SampledFrom([]int{0, 1}).Draw(r, "window")
		dir := t.TempDir()
		between := func() {}
		store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Prune: func(ctx context.Context, dir string, e backend.Engine) error {
			derivedfile.BetweenParts = between
			err := search.Prune(ctx, dir, e)
			derivedfile.BetweenParts = nil
			if err == nil {
				kept++
			}
			return err
		}})
		require.NoError(r, err)
		defer store.Close()
		var handles [2]*search.Index
		for i := range handles {
			handles[i], err = search.Open(bg, store, dir, search.Options{})
			require.NoError(r, err)
			defer func() { require.NoError(r, handles[i].Close()) }()
		}
		m := searchtest.NewMachine(r, store)
		for range rapid.IntRange(1, 3).Draw(r, "rounds") {
			for range rapid.IntRange(0, 15).Draw(r, "steps") {
				m.Step()
			}
			require.NoError(r, handles[0].Update(bg))
			for range rapid.IntRange(0, 5).Draw(r, "more") {
				m.Step()
			}
			most := 12
			between = func() {
				if most == 0 {
					return
				}
				switch rapid.IntRange(0, 5).Draw(r, "between") {
				case 0, 1:
					m.Step()
				case 2:
					require.NoError(r, rapid.SampledFrom(handles[:]).Draw(r, "handle").Update(bg))
				case 3:
					m.Check(handles[1])
				default:
					return
				}
				most--
			}
			collect(t, store)
			between = func() {}
			m.Check(handles[0])
			m.Check(handles[1])
			fresh := indexed{t.TempDir()}
			h := fresh.Open(r, store, func() {})
			require.NoError(r, h.Update(bg))
			require.NoError(r, h.Close())
			require.Equal(r, fresh.Rows(r), indexed{dir}.Rows(r))
			for _, row := range (indexed{dir}).Whole(r) {
				require.NotContains(r, row, " without a ")
			}
			if rapid.Bool().Draw(r, "alone") {
				require.NoError(r, search.Prune(bg, dir, write.Inner(write.Of(store).Engine())))
				require.Equal(r, fresh.Whole(r), indexed{dir}.Whole(r))
			}
		}
	})
	if !testing.Short() {
		require.NotZero(t, kept)
	}
}

// disturbed is an engine that calls a function when one of its snapshots reads something.
type disturbed struct {
	backend.Engine
	disturb func()
}

func (e disturbed) StoreID() [16]byte { return e.Engine.(backend.Identified).StoreID() }

func (e disturbed) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	s, err := e.Engine.Snapshot(ctx)
	return disturbedSnapshot{s, e}, err
}

type disturbedSnapshot struct {
	backend.Snapshot
	engine disturbed
}

func (s disturbedSnapshot) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	s.engine.disturb()
	return s.Snapshot.Last(ctx, run)
}

func (s disturbedSnapshot) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	s.engine.disturb()
	return s.Snapshot.Summaries(ctx, id)
}

// Pruning comes to an end, however often others write.
func TestPruningEndsWhileOthersWrite(t *testing.T) {
	defer search.SetPatience(search.SetPatience(time.Second))
	dir := t.TempDir()
	calls, disturb := 0, func() {}
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Prune: func(ctx context.Context, dir string, e backend.Engine) error {
		return search.Prune(ctx, dir, disturbed{e, disturb})
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	x, err := search.Open(bg, store, dir, search.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	gone, _ := newMain(t, store, lineage.User(secret(0)))
	_, main := newMain(t, store, lineage.User("an ant"))
	_, err = main.Summarize(bg, searchtest.Saying("of ants"), lineage.SummarizeOptions{})
	require.NoError(t, err)
	require.NoError(t, x.Update(bg))
	require.NoError(t, gone.Delete(bg))
	disturb = func() {
		if calls++; calls < 200 {
			_, err := main.Extend(bg, lineage.User("a bee"))
			require.NoError(t, err)
			_ = x.Update(bg) // pruning may be writing
		}
	}
	require.NotContains(t, collect(t, store).Removed, search.FileName)
	require.Less(t, calls, 100)
	requireNoSecret(t, dir)
	require.Empty(t, found(t, x, "aq*"))
	require.Len(t, found(t, x, "ant"), 2)
	requireRebuilt(t, store, dir)
}

// A search with little time finds what the index has, while another process writes to it for long.
func TestLittleTimeWhileOthersWrite(t *testing.T) {
	dir := t.TempDir()
	store, x := open(t, dir)
	defer func() { require.NoError(t, store.Close()) }()
	defer func() { require.NoError(t, x.Close()) }()
	_, main := newMain(t, store, lineage.User("an ant"))
	require.NoError(t, x.Update(bg))
	_, err := main.Extend(bg, lineage.User("another ant"))
	require.NoError(t, err)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, search.FileName)+"?_txlock=immediate")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	tx, err := db.Begin()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(bg, time.Minute) // others are waited for twice as long
	defer cancel()
	var behind uint64
	hits, err := x.Search(ctx, search.Query{Text: "ant", UpdateFor: 100 * time.Millisecond, Behind: func(n uint64, why error) {
		behind = n
		require.ErrorIs(t, why, derived.ErrUnfinished)
	}})
	require.NoError(t, err)
	require.Len(t, hits, 1)
	require.EqualValues(t, 1, behind)
	require.NoError(t, tx.Rollback())
	require.Len(t, found(t, x, "ant"), 2)
}

// Many small commits after a large one, such as deletions, do not make an index that has nearly all messages useless.
func TestFewMessagesInManyCommits(t *testing.T) {
	dir := t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Prune: search.Prune})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	x, err := search.Open(bg, store, dir, search.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	var many []lineage.Item
	for i := range 100 {
		many = append(many, lineage.User(fmt.Sprint("an ant ", i)))
	}
	_, main := newMain(t, store, many...)
	gone, _ := newMain(t, store, lineage.User(secret(0)))
	require.NoError(t, x.Update(bg))
	require.NoError(t, gone.Delete(bg))
	for i := range 40 {
		_, err := main.Extend(bg, lineage.User(fmt.Sprint("a bee ", i)))
		require.NoError(t, err)
	}
	require.NotContains(t, collect(t, store).Removed, search.FileName)
	requireNoSecret(t, dir)
	requireRebuilt(t, store, dir)
}

// Pruning that is cancelled after any of its transactions leaves nothing of what was collected.
func TestPruningIsCancelledAnywhere(t *testing.T) {
	defer smallParts(100)()
	defer func(was int) { derivedfile.SomePages = was }(derivedfile.SomePages)
	derivedfile.SomePages = 10
	dir := t.TempDir()
	var prune func(ctx context.Context, dir string, e backend.Engine) error
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Prune: func(ctx context.Context, dir string, e backend.Engine) error { return prune(ctx, dir, e) }})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	x, err := search.Open(bg, store, dir, search.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	newMain(t, store, lineage.User("an ant"))
	for stop, stopped := 1, true; stopped; stop++ {
		gone, c := newMain(t, store, lineage.User(secret(0)))
		for i := range 20 {
			_, err := c.Extend(bg, lineage.User(secret(i)))
			require.NoError(t, err)
		}
		require.NoError(t, x.Update(bg))
		require.NoError(t, gone.Delete(bg))
		ctx, cancel := context.WithCancel(bg)
		parts := 0
		prune = func(_ context.Context, dir string, e backend.Engine) error {
			derivedfile.BetweenParts = func() {
				if parts++; parts == stop {
					cancel()
				}
			}
			err := search.Prune(ctx, dir, e)
			derivedfile.BetweenParts = nil
			if stopped = ctx.Err() != nil; stopped {
				require.ErrorIs(t, err, context.Canceled)
			}
			return err
		}
		collect(t, store)
		cancel()
		requireNoSecret(t, dir)
		require.Len(t, found(t, x, "ant"), 1, fmt.Sprint("stopped after ", stop))
		require.Empty(t, found(t, x, strings.Fields(secret(3))[1]))
		requireRebuilt(t, store, dir)
	}
}

// What others add to the index while dead runs are looked for is not taken for dead, because it is newer than what pruning began with.
func TestOthersWriteWhileDeadRunsAreFound(t *testing.T) {
	dir := t.TempDir()
	store, x := open(t, dir)
	defer func() { require.NoError(t, store.Close()) }()
	defer func() { require.NoError(t, x.Close()) }()
	var main *lineage.Context
	for range 1001 { // more runs than are read at once
		_, main = newMain(t, store, lineage.User("an ant"))
	}
	require.NoError(t, x.Update(bg))
	calls := 0
	require.NoError(t, search.Prune(bg, dir, disturbed{write.Inner(write.Of(store).Engine()), func() {
		if calls++; calls == 1 {
			_, err := main.Extend(bg, lineage.User("a bee"))
			require.NoError(t, err)
			require.NoError(t, x.Update(bg))
		}
	}}))
	require.Len(t, found(t, x, "bee"), 1)
	requireRebuilt(t, store, dir)
}
