package derived_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/lineage/derived/derivedtest"
)

var bg = context.Background()

func (h *handle) follower(store *lineage.Store) *derived.Follower[*transaction] {
	return &derived.Follower[*transaction]{Store: store, Target: h, Commits: true, Limit: h.limit}
}

func (h *handle) run(store *lineage.Store) (derived.Report, error) { return h.follower(store).Run(bg) }

// errKilled ends a process at a step.
var errKilled = errors.New("killed")

// place is a memory for the suite.
type place struct{ *memory }

func (p place) Open(t require.TestingT, store *lineage.Store, written func()) derivedtest.Handle {
	h := &handle{memory: p.memory, t: t, limit: 1, at: func(step string) error {
		if step == "committed" {
			written()
		}
		return nil
	}}
	return updater{h, store}
}

func (p place) Rows(require.TestingT) []string {
	rows := maps.Clone(p.rows)
	maps.DeleteFunc(rows, func(key, row string) bool { return unused(key, row) })
	return lines(rows)
}

func (p place) Prune(t require.TestingT, store *lineage.Store) {
	f := (&handle{memory: p.memory, t: t}).follower(store)
	f.Prune = true
	_, err := f.Run(bg)
	require.NoError(t, err)
}

func (p place) Whole(require.TestingT) []string { return lines(p.rows) }

func (p place) Number(require.TestingT) int { return int(p.mark.At.Number) }

// updater is a handle that follows a store.
type updater struct {
	*handle
	store *lineage.Store
}

func (u updater) Update(ctx context.Context) error {
	_, err := u.follower(u.store).Run(ctx)
	return err
}

func (u updater) Close() error { return nil }

func TestConformance(t *testing.T) {
	derivedtest.Run(t, derivedtest.Config{New: func(testing.TB) derivedtest.Data { return place{&memory{}} }, Checks: 30})
}

// TestInterleaved runs followers that change places at every step, while the store changes, and that are killed
// between any two steps.
func TestInterleaved(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		store, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(r, err)
		defer store.Close()
		m := &derivedtest.Machine{T: r, Store: store}
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
					m.Change()
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
				m.Change()
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

// slowTarget has no time for windows of more than some commits.
type slowTarget struct {
	*handle
	most int
	all  []int // commits of the windows, negative if there was no time
}

func (s *slowTarget) Apply(ctx context.Context, w *derived.Window[*transaction]) error {
	if len(w.Commits) > s.most {
		s.all = append(s.all, -len(w.Commits))
		return fmt.Errorf("for the test: %w", derived.ErrSlow)
	}
	s.all = append(s.all, len(w.Commits))
	return s.handle.Apply(ctx, w)
}

// TestSlowWindows halves windows until they are written in time, also the rest of a store that is less than a window, and
// tries larger ones after some. When there is no time for a single commit, the error says so. A run that is late applies a
// window first.
func TestSlowWindows(t *testing.T) {
	store, err := lineage.OpenMemory(bg, lineage.Options{})
	require.NoError(t, err)
	defer store.Close()
	for range 300 {
		_, err := store.CreateThread(bg, lineage.ThreadOptions{})
		require.NoError(t, err)
	}
	data := &memory{}
	run := func(most int, until time.Time) ([]int, error) {
		s := &slowTarget{handle: &handle{memory: data, t: t}, most: most}
		f := derived.Follower[*transaction]{Store: store, Target: s, Commits: true, Until: until}
		_, err := f.Run(bg)
		return s.all, err
	}
	all, err := run(0, time.Time{})
	require.ErrorIs(t, err, derived.ErrSlow)
	require.Less(t, len(all), 14)
	require.Equal(t, -1, all[len(all)-1])
	all, err = run(10, time.Now().Add(-time.Hour))
	require.ErrorIs(t, err, derived.ErrUnfinished)
	last := len(all) - 1
	require.Positive(t, all[last])
	for _, n := range all[:last] {
		require.Negative(t, n)
	}
	all, err = run(10, time.Time{})
	require.NoError(t, err)
	slow, largest := 0, 0
	for _, n := range all[last:] {
		if n < 0 {
			slow++
		}
		largest = max(largest, n)
	}
	require.Greater(t, largest, 4)
	require.Positive(t, slow, "it grew")
	require.Less(t, slow, len(all)/8)
	requireDerived(t, store, data.rows)
}
