package embedded

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// TestSurvey collects a log by a survey of a store: what the filter leaves makes a sound copy, in
// which everything is as in a model that was collected, or, with commits that came after the
// survey, every context as it was.
//
//test:norace
func TestSurvey(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := &collectStore{t: rt, author: &backendtest.Author{Chooser: backendtest.Drawn{T: rt}}, state: backendtest.NewModel()}
		s.opt = Options{InMemory: true, Durability: backend.Normal}
		s.open()
		defer func() { s.close() }()
		for range rapid.IntRange(1, 60).Draw(rt, "before") {
			s.commit()
		}
		o := s.collectOptions(rapid.IntRange(0, 20).Draw(rt, "keep"))
		survey, err := s.engine.Survey(background, o)
		require.NoError(rt, err)
		s.check()
		first, err := survey.LiveSet().Encode([16]byte{3})
		require.NoError(rt, err)
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
		log := logOf(rt, s.engine)
		require.EqualValues(rt, len(log), set.Until)
		if !survey.Revived() { // commits from before the survey have the same records without what is dead
			was, err := live.Decode(first, store, "set")
			require.NoError(rt, err)
			for _, c := range log[:was.Until] {
				require.Equal(rt, leftOf(rt, c, was), leftOf(rt, c, set), "commit %d", c.Number)
			}
		}

		id := [16]byte{5}
		replica, err := Open(background, "", Options{InMemory: true, ID: id})
		require.NoError(rt, err)
		defer replica.Close()
		require.Equal(rt, id, replica.StoreID())
		var report backend.CollectReport
		for _, c := range log {
			was := slices.Clone(c.Payload)
			var changed, again bool
			var err error
			c.Payload, changed, err = set.FilterEncoded(c.Number, c.Payload, &report)
			require.NoError(rt, err)
			require.Equal(rt, changed, !bytes.Equal(was, c.Payload))
			c.Payload, again, err = set.FilterEncoded(c.Number, c.Payload, new(backend.CollectReport))
			require.NoError(rt, err)
			require.False(rt, again)
			require.NoError(rt, replica.Follow(background, c))
		}
		require.Empty(rt, complaints(rt, replica))
		would := survey.Report()
		if after == 0 {
			require.Equal(rt, []uint64{would.Records, would.Spans, would.Blocks, would.Chunks, would.Erased, would.Bytes},
				[]uint64{report.Records, report.Spans, report.Blocks, report.Chunks, report.Erased, report.Bytes})
			got := ask(rt, replica, s.ever)
			delete(got, "feed")
			require.Empty(rt, got.Wrong(collected.Facts(censusOf(s.ever)), false))
			return
		}
		for c, err := range s.engine.Contexts(background, structure.ThreadID{}, structure.ContextID{}) {
			require.NoError(rt, err)
			got, err := replica.Context(background, c.ID)
			require.NoError(rt, err)
			require.Equal(rt, c, got)
			want, err := s.engine.Digest(background, c.Tip)
			require.NoError(rt, err)
			digest, err := replica.Digest(background, c.Tip)
			require.NoError(rt, err)
			require.Equal(rt, want, digest)
		}
	})
}

// logOf returns the commits of a store as they are in its journal.
func logOf(t require.TestingT, e *Engine) (log []Sequenced) {
	for f, err := range e.journal.Frames(journal.Position{}) {
		require.NoError(t, err)
		if !f.Mark {
			log = append(log, Sequenced{Number: f.Number, ID: 7, Payload: bytes.Clone(f.Payload)})
		}
	}
	return log
}

// leftOf returns the records of a commit that are in a set, without what an erasure removes from them.
func leftOf(t require.TestingT, c Sequenced, set *live.Set) []structure.Record {
	left, _, err := set.FilterEncoded(c.Number, c.Payload, new(backend.CollectReport))
	require.NoError(t, err)
	commit, err := structure.DecodeCommit(left)
	require.NoError(t, err)
	for i, r := range commit.Records {
		switch r := r.(type) {
		case *structure.Block:
			commit.Records[i] = structure.Described(r.Block)
		case *structure.Summary:
			commit.Records[i] = r.WithoutEmbedding()
		}
	}
	return commit.Records
}
