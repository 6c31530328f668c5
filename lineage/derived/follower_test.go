package derived_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

var bg = context.Background()

func (h *handle) follower(store *lineage.Store) *derived.Follower[*transaction] {
	return &derived.Follower[*transaction]{Store: store, Target: h, Commits: true, Limit: h.limit}
}

func (h *handle) run(store *lineage.Store) (derived.Report, error) { return h.follower(store).Run(bg) }

// errKilled ends a process at a step.
var errKilled = errors.New("killed")

// machine changes a store at random.
type machine struct {
	t     *rapid.T
	store *lineage.Store
}

func (m *machine) must(err error) { require.NoError(m.t, err) }

// change makes a random change, if possible.
func (m *machine) change() {
	var contexts []backend.Context
	for c, err := range m.store.View().Contexts(bg, lineage.ThreadID{}, lineage.ContextID{}) {
		m.must(err)
		contexts = append(contexts, c)
	}
	what := rapid.SampledFrom([]string{
		"thread", "alone", "extend", "extend", "extend", "fork", "rewind", "delete", "delete thread", "checkpoint", "erase", "summarize", "value", "collect",
	}).Draw(m.t, "change")
	switch what {
	case "thread":
		source := fmt.Sprint("t", rapid.IntRange(0, 2).Draw(m.t, "source"))
		_, err := m.store.CreateThread(bg, lineage.ThreadOptions{SourceID: source, Keep: rapid.Bool().Draw(m.t, "keep")})
		if err != nil {
			require.ErrorIs(m.t, err, lineage.ErrExists)
		}
	case "alone":
		_, err := m.store.NewContext(bg, lineage.ContextOptions{})
		m.must(err)
	case "value":
		m.must(m.store.Values(lineage.Owner{Scope: structure.StoreScope}).Set(bg, rapid.SampledFrom([]string{"a", "b"}).Draw(m.t, "key"), []byte("1")))
	case "erase":
		if err := m.store.Erase(bg, content.Sum([]byte(m.text()))); err != nil {
			require.ErrorIs(m.t, err, lineage.ErrNotFound)
		}
	case "collect":
		_, err := m.store.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
		m.must(err)
	default:
		if len(contexts) > 0 {
			m.changeContext(what, contexts[rapid.IntRange(0, len(contexts)-1).Draw(m.t, "context")])
		}
	}
}

func (m *machine) text() string {
	return rapid.SampledFrom([]string{"ant", "bee", "cat"}).Draw(m.t, "text")
}

func (m *machine) changeContext(what string, of backend.Context) {
	c, err := m.store.Context(bg, of.ID)
	m.must(err)
	var th *lineage.Thread
	if !of.Thread.IsZero() {
		th, err = m.store.Thread(bg, of.Thread)
		m.must(err)
	}
	switch what {
	case "extend":
		_, err = c.Extend(bg, lineage.User(m.text()))
	case "fork":
		o := lineage.ForkOptions{}
		if th != nil && rapid.Bool().Draw(m.t, "in the thread") {
			o.Thread = th.ID()
		}
		_, err = c.Fork(bg, o)
	case "rewind":
		err = c.MoveTo(bg, of.Base, "rewind")
	case "summarize":
		_, err = c.Summarize(bg, saying("sum"), lineage.SummarizeOptions{Whole: true})
	case "delete":
		err = c.Delete(bg)
	case "delete thread":
		if th != nil {
			err = th.Delete(bg)
		}
	case "checkpoint":
		if th != nil {
			_, err = th.SetCheckpoint(bg, "here", lineage.CheckpointOptions{})
		}
	}
	_ = err // impossible changes are skipped
}

// saying is a summarizer that always returns the same text.
type saying string

func (s saying) Summarize(context.Context, []lineage.Passage) (lineage.SummaryText, error) {
	return lineage.SummaryText{Text: string(s)}, nil
}

// TestInterleaved runs followers that change places at every step, while the store changes, and that are killed
// between any two steps.
func TestInterleaved(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		store, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(r, err)
		defer store.Close()
		m := &machine{r, store}
		data := &memory{}
		limit := rapid.SampledFrom([]int{0, 1, 3, 10}).Draw(r, "limit")
		left := 200 // steps at which something happens
		var run func(depth int)
		run = func(depth int) {
			h := &handle{memory: data, t: r, limit: limit}
			h.at = func(step string) error {
				if left--; left < 0 {
					return nil
				}
				switch rapid.IntRange(0, 9).Draw(r, step) {
				case 0:
					m.change()
				case 1:
					if depth < 3 {
						run(depth + 1)
					}
				case 2:
					return errKilled
				}
				return nil
			}
			if _, err := h.run(store); err != nil {
				require.ErrorIs(r, err, errKilled)
			}
		}
		for range rapid.IntRange(1, 8).Draw(r, "rounds") {
			for range rapid.IntRange(0, 8).Draw(r, "changes") {
				m.change()
			}
			run(0)
		}
		last := &handle{memory: data, t: r, limit: limit}
		report, err := last.run(store)
		require.NoError(r, err)
		head, err := store.View().Head(bg)
		require.NoError(r, err)
		require.Equal(r, head, report.To)
		require.True(r, data.mark.Settled())
		requireDerived(r, store, data.rows)
		again, err := last.run(store)
		require.NoError(r, err)
		require.Equal(r, derived.Report{From: head, To: head}, again)
	})
}

func newStore(t testing.TB) *lineage.Store {
	store, err := lineage.OpenMemory(bg, lineage.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// talk adds messages to a new context.
func talk(t testing.TB, store *lineage.Store, texts ...string) *lineage.Context {
	c, err := store.NewContext(bg, lineage.ContextOptions{})
	require.NoError(t, err)
	for _, text := range texts {
		_, err = c.Extend(bg, lineage.User(text))
		require.NoError(t, err)
	}
	return c
}

// A run in windows reports progress, and each window is limited.
func TestWindows(t *testing.T) {
	store := newStore(t)
	for i := range 20 {
		talk(t, store, fmt.Sprint("text ", i), "common")
	}
	h := &handle{memory: &memory{}, t: t, limit: 5}
	f := h.follower(store)
	var all []uint64
	f.Progress = func(done, total uint64) {
		require.Less(t, done, total)
		all = append(all, done)
	}
	report, err := f.Run(bg)
	require.NoError(t, err)
	require.Greater(t, len(all), 10)
	require.IsIncreasing(t, all)
	require.Zero(t, report.From)
	requireDerived(t, store, h.rows)
}

// Bodies of blocks limit a window, too.
func TestLargeCommits(t *testing.T) {
	store := newStore(t)
	for i := range 6 {
		talk(t, store, string(rune('a'+i))+string(make([]byte, 3<<20)))
	}
	h := &handle{memory: &memory{}, t: t}
	f := h.follower(store)
	f.Progress = func(done, total uint64) { require.LessOrEqual(t, len(h.rows), 40) }
	_, err := f.Run(bg)
	require.NoError(t, err)
	requireDerived(t, store, h.rows)
}

// Data of another store, and of commits that the store does not have, is refused and left as it is: also when only
// a part of a pass was of the other history.
func TestOtherHistories(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) *lineage.Store {
		store, err := lineage.Open(bg, filepath.Join(dir, name), lineage.Options{Durability: lineage.Normal})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		return store
	}
	store := open("store")
	c := talk(t, store, "both have it")
	half, whole := &handle{memory: &memory{}, t: t}, &handle{memory: &memory{}, t: t}
	_, err := half.run(store)
	require.NoError(t, err)
	_, err = store.Backup(bg, filepath.Join(dir, "backup"), lineage.BackupOptions{})
	require.NoError(t, err)
	_, err = c.Extend(bg, lineage.User("only the original has it"))
	require.NoError(t, err)
	_, err = whole.run(store)
	require.NoError(t, err)
	half.at = func(step string) error {
		if step == "committed" {
			return errKilled
		}
		return nil
	}
	_, err = half.run(store)
	require.ErrorIs(t, err, errKilled)
	half.at = nil
	require.False(t, half.mark.Settled())

	_, err = lineage.Restore(bg, filepath.Join(dir, "backup"), filepath.Join(dir, "restored"), lineage.RestoreOptions{})
	require.NoError(t, err)
	restored, other := open("restored"), open("other")
	for range 4 {
		for _, h := range []*handle{half, whole} {
			was, mark := lines(h.rows), h.mark
			_, err = h.run(restored)
			require.ErrorIs(t, err, lineage.ErrDiverged)
			_, err = h.run(other)
			require.ErrorIs(t, err, derived.ErrOtherStore)
			require.Equal(t, was, lines(h.rows))
			require.Equal(t, mark, h.mark)
		}
		talk(t, restored, "only the copy has it")
	}
	for _, h := range []*handle{half, whole} {
		_, err = h.run(store)
		require.NoError(t, err)
		requireDerived(t, store, h.rows)
	}
}

// torn fails in Apply after another follower has written, as a reader of half of its rows might.
type torn struct {
	*handle
	before func()
	err    error
}

func (f *torn) Apply(ctx context.Context, w *derived.Window[*transaction]) error {
	if before := f.before; before != nil {
		f.before = nil
		before()
		return f.err
	}
	return f.handle.Apply(ctx, w)
}

// An error of Apply is only reported if nobody else has written meanwhile.
func TestErrorWhileAnotherWrites(t *testing.T) {
	store := newStore(t)
	talk(t, store, "one")
	h := &handle{memory: &memory{}, t: t}
	broken := errors.New("a row is missing")
	f := &torn{handle: h, err: broken, before: func() {}}
	_, err := (&derived.Follower[*transaction]{Store: store, Target: f}).Run(bg)
	require.ErrorIs(t, err, broken)
	f.before = func() {
		_, err := h.run(store)
		require.NoError(t, err)
	}
	_, err = (&derived.Follower[*transaction]{Store: store, Target: f}).Run(bg)
	require.NoError(t, err)
	requireDerived(t, store, h.rows)
}

// Following waits for commits, and ends with the context.
func TestFollow(t *testing.T) {
	store := newStore(t)
	h := &handle{memory: &memory{}, t: t}
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	reached, ended := make(chan uint64), make(chan error)
	go func() {
		ended <- derived.Follow(ctx, store, func(ctx context.Context) (backend.Cursor, error) {
			r, err := h.follower(store).Run(ctx)
			select {
			case reached <- r.To.Number:
			case <-ctx.Done():
			}
			return r.To, err
		})
	}()
	for range 3 {
		talk(t, store, "one")
		head, err := store.View().Head(bg)
		require.NoError(t, err)
		for at := range reached {
			if at >= head.Number {
				break
			}
		}
		requireDerived(t, store, h.rows)
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}
