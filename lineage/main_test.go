package lineage_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
)

func TestMain(m *testing.M) {
	campaign.Checks(15) // each opens stores
	goleak.VerifyTestMain(m)
}

// ticking returns a clock that advances by a second per call.
func ticking() func() time.Time {
	var seconds atomic.Int64
	start := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	return func() time.Time { return start.Add(time.Duration(seconds.Add(1)) * time.Second) }
}

var bg = context.Background()

// open opens a store that is closed at the end of the test. Power loss is tested elsewhere, so
// commits do not wait for the disk.
func open(t testing.TB, dir string) *lineage.Store {
	t.Helper()
	s, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newStore(t testing.TB) *lineage.Store {
	t.Helper()
	return open(t, t.TempDir())
}

// newClockedStore opens a store whose clock ticks.
func newClockedStore(t testing.TB) *lineage.Store {
	t.Helper()
	s, err := lineage.Open(bg, t.TempDir(), lineage.Options{Durability: lineage.Normal, Now: ticking()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newThread(t testing.TB, s *lineage.Store) (*lineage.Thread, *lineage.Context) {
	t.Helper()
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	return thread, activeOf(t, thread)
}

func activeOf(t testing.TB, thread *lineage.Thread) *lineage.Context {
	t.Helper()
	c, err := thread.Active(bg)
	require.NoError(t, err)
	return c
}

func newContext(t testing.TB, s *lineage.Store, texts ...string) *lineage.Context {
	t.Helper()
	c, err := s.NewContext(bg, lineage.ContextOptions{})
	require.NoError(t, err)
	say(t, c, texts...)
	return c
}

// say adds user messages and returns the span of the last one.
func say(t testing.TB, c *lineage.Context, texts ...string) lineage.SpanRef {
	t.Helper()
	var at lineage.SpanRef
	for _, text := range texts {
		spans, err := c.Extend(bg, lineage.User(text))
		require.NoError(t, err)
		at = spans[0]
	}
	return at
}

func fork(t testing.TB, c *lineage.Context) *lineage.Context {
	t.Helper()
	f, err := c.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	return f
}

func tip(t testing.TB, c *lineage.Context) lineage.SpanRef {
	t.Helper()
	at, err := c.Tip(bg)
	require.NoError(t, err)
	return at
}

// texts returns the texts of a context's history.
func texts(t testing.TB, c *lineage.Context) []string {
	t.Helper()
	entries, err := c.All(bg)
	require.NoError(t, err)
	return textsOf(entries)
}

func textsOf(entries []*lineage.Entry) []string {
	said := []string{}
	for _, e := range entries {
		said = append(said, e.Excerpt())
	}
	return said
}

// gather returns the values of a sequence and the error that ended it.
func gather[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for v, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

func gathered[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	all, err := gather(seq)
	require.NoError(t, err)
	return all
}

// requireSound verifies the store.
func requireSound(t require.TestingT, s *lineage.Store) {
	findings, err := gather(s.Verify(bg, lineage.VerifyOptions{Deep: true}))
	require.NoError(t, err)
	require.Empty(t, findings)
}

func numbered(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s %d", prefix, i+1)
	}
	return all
}

func pointer(s string) *string { return &s }

// back moves a context back by n spans.
func back(t require.TestingT, c *lineage.Context, n uint64) { require.NoError(t, goBack(c, n)) }

func goBack(c *lineage.Context, n uint64) error {
	entries, err := gather(c.Entries(bg, lineage.Window{}))
	if err != nil {
		return err
	}
	var to lineage.SpanRef
	for _, e := range entries {
		if e.Position+n <= entries[len(entries)-1].Position {
			to = e.Span
		}
	}
	return c.MoveTo(bg, to, "rewind")
}
