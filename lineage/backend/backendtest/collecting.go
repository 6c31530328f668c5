package backendtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/backend"
)

// testCollect collects now and then while random commits are applied, where the engine can, and
// compares every answer with that of a model. Followers continue from where they were.
func testCollect(t *testing.T, c Config) {
	c.Reopen = false // the steps do, now and then
	probe := newStore(t, c)
	if _, ok := probe.Engine.(backend.Collector); !ok {
		t.Skip("the engine does not collect")
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := openStore(rt, c, t)
		defer func() { require.NoError(rt, s.Close()) }()
		author := &Author{Chooser: Drawn{T: rt}}
		var followed backend.Cursor
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			switch rapid.IntRange(0, 7).Draw(rt, "step") {
			case 0:
				s.restart()
				s.check()
			case 1:
				head, err := s.Head(background)
				require.NoError(rt, err)
				followed = head
			case 2, 3:
				s.collect(backend.CollectOptions{
					Now: author.Now(), KeepUnused: -1, KeepReflog: time.Duration(rapid.IntRange(0, 20).Draw(rt, "keep"))*time.Millisecond - 1,
				})
			default:
				for range rapid.IntRange(1, 8).Draw(rt, "commits") {
					s.applyOnly(author.Next(s.model), backend.Options{})
				}
			}
		}
		s.check()
		next := followed.Number
		for commit, err := range s.Feed(background, followed) {
			require.NoError(rt, err)
			next++
			require.Equal(rt, next, commit.Number)
		}
		require.Equal(rt, s.model.Number(), next)
		require.Empty(rt, verify(rt, s.Engine, true))
	})
}

// collect collects. A dry run before says the same, and a collection after it finds nothing.
func (s *store) collect(o backend.CollectOptions) {
	s.t.Helper()
	collector := s.Engine.(backend.Collector)
	o.DryRun = true
	would, err := collector.Collect(background, o)
	require.NoError(s.t, err)
	s.check()
	o.DryRun = false
	did, err := collector.Collect(background, o)
	require.NoError(s.t, err)
	// An engine may write its index between the two.
	would.Before, would.After, would.Removed = did.Before, did.After, did.Removed
	require.Equal(s.t, would, did)
	s.model.Collect(o.Now, max(o.KeepReflog, 0))
	s.check()
	o.DryRun = true
	again, err := collector.Collect(background, o)
	require.NoError(s.t, err)
	require.Zero(s.t, again.Records+again.Erased)
}
