package embedded

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// TestSurvey collects a log by a survey of its replica: what the filter leaves makes a sound replica, in
// which everything is as in a model that was collected, or, with commits that came after the
// survey, every context as it was.
//
//test:norace
func TestSurvey(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var log []Sequenced
		s := &collectStore{t: rt, author: &backendtest.Author{Chooser: backendtest.Drawn{T: rt}}, state: backendtest.NewModel()}
		s.opt = Options{InMemory: true, Durability: backend.Normal, Sequence: func(c Sequenced) (uint64, error) {
			c.ID, c.Payload = 7, bytes.Clone(c.Payload)
			log = append(log, c)
			return c.ID, nil
		}}
		s.open()
		defer func() { s.close() }()
		for range rapid.IntRange(1, 60).Draw(rt, "before") {
			s.commit()
		}
		o := s.collectOptions(rapid.IntRange(0, 20).Draw(rt, "keep"))
		survey, err := s.engine.Survey(background, o)
		require.NoError(rt, err)
		s.check()
		collected := s.state.Clone()
		collected.Collect(o.Now, max(o.KeepReflog, 0))
		after := rapid.IntRange(0, 5).Draw(rt, "after")
		for range after {
			s.commit()
		}
		require.NoError(rt, survey.Follow())
		store := [16]byte{3}
		encoded, err := survey.LiveSet().Encode(store)
		require.NoError(rt, err)
		_, err = live.Decode(encoded, [16]byte{4}, "set")
		require.ErrorIs(rt, err, backend.ErrCorrupt)
		set, err := live.Decode(encoded, store, "set")
		require.NoError(rt, err)
		require.EqualValues(rt, len(log), set.Until)

		id := [16]byte{5}
		replica, err := Open(background, "", Options{InMemory: true, ID: id})
		require.NoError(rt, err)
		defer replica.Close()
		require.Equal(rt, id, replica.StoreID())
		var report backend.CollectReport
		for _, c := range log {
			was := slices.Clone(c.Payload)
			changed, err := FilterDead(&c, set, &report)
			require.NoError(rt, err)
			require.Equal(rt, changed, !bytes.Equal(was, c.Payload))
			again, err := FilterDead(&c, set, new(backend.CollectReport))
			require.NoError(rt, err)
			require.False(rt, again)
			require.NoError(rt, replica.Follow(background, c))
		}
		require.Empty(rt, complaints(rt, replica))
		would := survey.Report()
		if after == 0 {
			require.Equal(rt, []uint64{would.Records, would.Spans, would.Blocks, would.Chunks, would.Erased, would.Bytes},
				[]uint64{report.Records, report.Spans, report.Blocks, report.Chunks, report.Erased, report.Bytes})
			is := ask(rt, replica, s.ever)
			delete(is, "feed")
			require.Empty(rt, is.Wrong(collected.Facts(censusOf(s.ever)), false))
			return
		}
		for c, err := range s.engine.Contexts(background, structure.ThreadID{}, structure.ContextID{}) {
			require.NoError(rt, err)
			is, err := replica.Context(background, c.ID)
			require.NoError(rt, err)
			require.Equal(rt, c, is)
			want, err := s.engine.Digest(background, c.Tip)
			require.NoError(rt, err)
			digest, err := replica.Digest(background, c.Tip)
			require.NoError(rt, err)
			require.Equal(rt, want, digest)
		}
	})
}
