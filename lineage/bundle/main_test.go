package bundle_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/structure"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(importerDir); dir != "" {
		os.Exit(importUntilKilled(dir))
	}
	campaign.Checks(8) // each opens stores
	goleak.VerifyTestMain(m)
}

var bg = context.Background()

// tester is a *testing.T or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
}

// ticking returns a clock that advances by a second at each call.
func ticking() func() time.Time {
	var seconds atomic.Int64
	start := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	return func() time.Time { return start.Add(time.Duration(seconds.Add(1)) * time.Second) }
}

func open(t tester, dir string, now func() time.Time) *lineage.Store {
	t.Helper()
	s, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Now: now})
	require.NoError(t, err)
	return s
}

func newStore(t testing.TB) *lineage.Store {
	t.Helper()
	s := open(t, t.TempDir(), ticking())
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newThread(t tester, s *lineage.Store, source string) (*lineage.Thread, *lineage.Context) {
	t.Helper()
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: source, Title: source})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	return thread, c
}

// say adds user messages and returns the last one's span.
func say(t tester, c *lineage.Context, texts ...string) lineage.SpanRef {
	t.Helper()
	var at lineage.SpanRef
	for _, text := range texts {
		spans, err := c.Extend(bg, lineage.User(text))
		require.NoError(t, err)
		at = spans[0]
	}
	return at
}

func on(t tester, s *lineage.Store, id lineage.ContextID) *lineage.Context {
	t.Helper()
	c, err := s.Context(bg, id)
	require.NoError(t, err)
	return c
}

func texts(t tester, c *lineage.Context) []string {
	t.Helper()
	entries, err := c.All(bg)
	require.NoError(t, err)
	said := []string{}
	for _, e := range entries {
		said = append(said, e.Excerpt())
	}
	return said
}

func writeBundle(t tester, s *lineage.Store, o bundle.WriteOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	report, err := bundle.Write(bg, s, &b, o)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), report.Bytes)
	return b.Bytes()
}

func bring(t tester, s *lineage.Store, b []byte) bundle.ImportReport {
	t.Helper()
	report, err := bundle.Import(bg, s, bytes.NewReader(b), bundle.ImportOptions{})
	require.NoError(t, err)
	return report
}

func head(t tester, s *lineage.Store) uint64 {
	t.Helper()
	at, err := s.View().Head(bg)
	require.NoError(t, err)
	return at.Number
}

// bringAgain imports what the store has and requires that it changes nothing.
func bringAgain(t tester, s *lineage.Store, b []byte) {
	t.Helper()
	before := head(t, s)
	bring(t, s, b)
	require.Equal(t, before, head(t, s), "an import of what is here made commits")
}

func requireSound(t tester, s *lineage.Store) {
	t.Helper()
	for finding, err := range s.Verify(bg, lineage.VerifyOptions{Deep: true}) {
		require.NoError(t, err)
		require.FailNow(t, finding.String())
	}
}

// digests returns the digests of all contexts.
func digests(t tester, s *lineage.Store) map[lineage.ContextID]structure.Digest {
	t.Helper()
	all := make(map[lineage.ContextID]structure.Digest)
	for c, err := range s.View().Contexts(bg, structure.ThreadID{}, structure.ContextID{}) {
		require.NoError(t, err)
		d, err := s.View().Digest(bg, c.Tip)
		require.NoError(t, err)
		all[c.ID] = d
	}
	return all
}

// everything describes everything that can be read of a store, except the numbers and times of its
// commits.
func everything(t tester, s *lineage.Store) []string {
	t.Helper()
	var all []string
	note := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	e := write.Of(s).Engine()
	values := func(owner structure.Owner) {
		for latest, err := range e.Values(bg, owner, "", "") {
			require.NoError(t, err)
			for v, err := range e.ValueHistory(bg, latest.ValueKey) {
				require.NoError(t, err)
				note("  value %v %d %s %v seen %v at %v", v.ValueKey, v.Incarnation, v.JSON, v.Content, v.Seen, v.At)
			}
		}
	}
	values(structure.Owner{Scope: structure.StoreScope})
	for name, err := range e.ValueOwners(bg, structure.UserScope, "") {
		require.NoError(t, err)
		values(structure.Owner{Scope: structure.UserScope, Name: name})
	}
	for c, err := range e.Contexts(bg, structure.ThreadID{}, structure.ContextID{}) {
		require.NoError(t, err)
		values(structure.Owner{Scope: structure.ContextScope, Context: c.ID})
		note("context %+v moved %d", withoutPointers(c.Context), c.MovedAt)
		for r, err := range e.Reflog(bg, c.ID) {
			require.NoError(t, err)
			note("  moved %+v", *r)
		}
		for m, err := range e.Summaries(bg, c.ID) {
			require.NoError(t, err)
			note("  summary %+v", *m)
		}
		for x, err := range on(t, s, c.ID).Entries(bg, lineage.Window{}) {
			require.NoError(t, err)
			own := *x
			own.Commit, own.Body = 0, nil
			note("  %+v %x", own, structure.DeriveID[structure.RunID](string(x.Body)))
		}
		for x, err := range e.Children(bg, c.ID, structure.ContextID{}) {
			require.NoError(t, err)
			note("  child %v", x.ID)
		}
	}
	for th, err := range e.Threads(bg, structure.ThreadID{}) {
		require.NoError(t, err)
		note("thread %+v", *th)
		values(structure.Owner{Scope: structure.ThreadScope, Thread: th.ID})
		for b, err := range e.Branches(bg, th.ID, "", "") {
			require.NoError(t, err)
			note("  branch %+v", *b)
		}
		for p, err := range e.Checkpoints(bg, th.ID, "") {
			require.NoError(t, err)
			note("  checkpoint %+v", *p)
		}
	}
	return all
}

func withoutPointers(c structure.Context) string {
	o := c.Overrides
	c.Overrides = structure.Overrides{}
	text := func(p *string) string {
		if p == nil {
			return "-"
		}
		return *p
	}
	return fmt.Sprintf("%+v %s %s %s", c, text(o.SystemPrompt), text(o.Model), o.JSON)
}

// requireSame requires that two stores have the same content.
func requireSame(t tester, want, got *lineage.Store) {
	t.Helper()
	requireSameLines(t, everything(t, want), everything(t, got))
}

// requireSameBundle requires that two bundles have the same bytes.
func requireSameBundle(t tester, want, got []byte) {
	t.Helper()
	if bytes.Equal(want, got) {
		return
	}
	a, err := bundle.Entries(want)
	require.NoError(t, err)
	b, err := bundle.Entries(got)
	require.NoError(t, err)
	requireSameLines(t, a, b)
	require.FailNow(t, "the bytes differ")
}

func requireSameLines(t tester, a, b []string) {
	t.Helper()
	for i := range min(len(a), len(b)) {
		same := 0
		for same < min(len(a[i]), len(b[i])) && a[i][same] == b[i][same] {
			same++
		}
		require.True(t, a[i] == b[i], "should …%s\nis …%s\nin %s", a[i][max(same-20, 0):], b[i][max(same-20, 0):], a[i])
	}
	require.Len(t, b, len(a))
}
