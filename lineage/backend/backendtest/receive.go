package backendtest

import (
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// testReceive copies a store with random commits to another one, a part at a time. Every answer is that of the model,
// the commits have the same numbers, ids and times, and the copy can continue on its own.
func testReceive(t *testing.T, c Config) {
	c.Reopen = false
	rapid.Check(t, func(rt *rapid.T) {
		s, to := openStore(rt, c, t), openStore(rt, c, t)
		defer func() { require.NoError(rt, errors.Join(s.Close(), to.Close())) }()
		if _, ok := to.Engine.(backend.Receiver); !ok || errors.Is(to.take(nothing), errors.ErrUnsupported) {
			t.Skip("it does not receive")
		}
		s.apply(thread("a"), thread("b"), view("a", "a", structure.SpanRef{}), run("run 0", structure.SpanRef{}))
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				s.restart()
			case 1:
				to.restart()
			case 2:
				to.receive(s, int(s.model.number))
				to.check()
			case 3:
				to.receive(s, rapid.IntRange(0, 3).Draw(rt, "some"))
				require.Empty(rt, verify(rt, to.Engine, true))
			default:
				s.randomCommit(rt)
			}
		}
		to.receive(s, int(s.model.number))
		to.check()
		if rapid.Bool().Draw(rt, "reopened") {
			to.restart()
			to.check()
		}
		require.Equal(rt, cursorsOf(rt, s), cursorsOf(rt, to))
		equalFeed(rt, withoutBodies(s.model.feedFrom(0)), withoutBodies(values(rt, to.Feed(background, from(1)))))
		require.Empty(rt, verify(rt, to.Engine, true))

		// A commit that is not the next one changes nothing.
		for commit, err := range s.Feed(background, backend.Cursor{}) {
			require.NoError(rt, err)
			require.ErrorIs(rt, to.take(one(commit, nil)), backend.ErrConflict)
			break
		}
		enough := errors.New("enough")
		require.ErrorIs(rt, to.take(one(nil, enough)), enough)
		require.NoError(rt, to.take(nothing))
		head, err := to.Head(background)
		require.NoError(rt, err)
		require.EqualValues(rt, s.model.number, head.Number)

		// Commits made in the copy get ids that commits of the other store never have.
		request := backend.Once{Session: [16]byte{1}, Sequence: 1}
		_, err = to.Apply(background, s.commit(thread("of a request")), backend.Options{Once: &request})
		require.ErrorIs(rt, err, backend.ErrUncertain, "it may have been applied before")
		request.Since = head
		added, err := to.Apply(background, s.commit(thread("of the copy")), backend.Options{Once: &request})
		require.NoError(rt, err)
		ofSource, err := s.Apply(background, s.commit(thread("of the source")), backend.Options{})
		require.NoError(rt, err)
		require.Equal(rt, added.Number, ofSource.Number)
		require.NotEqual(rt, added.ID, ofSource.ID)
		for _, err := range s.Feed(background, added.Cursor) {
			require.ErrorIs(rt, err, backend.ErrDiverged)
		}
		require.Empty(rt, verify(rt, to.Engine, true))
	})
}

// receive copies n commits of another store, and its model if these are all.
func (s *store) receive(from *store, n int) {
	s.t.Helper()
	head, err := s.Head(background)
	require.NoError(s.t, err)
	if n > 0 {
		require.NoError(s.t, s.take(atMost(n, from.Feed(background, head))))
	}
	s.model, s.seen, s.clock = from.model.clone(), from.seen, from.clock
}

func (s *store) take(commits iter.Seq2[*structure.Commit, error]) error {
	return s.Engine.(backend.Receiver).Receive(background, commits)
}

// withoutBodies removes what a copy may lack: the bytes of content that was erased when it was copied and stored
// again later.
func withoutBodies(commits []structure.Commit) []structure.Commit {
	for _, c := range commits {
		for i, r := range c.Records {
			if b, ok := r.(*structure.Block); ok {
				c.Records[i] = structure.Described(b.Block)
			}
		}
	}
	return commits
}

func nothing(func(*structure.Commit, error) bool) {}

func one(c *structure.Commit, err error) iter.Seq2[*structure.Commit, error] {
	return func(yield func(*structure.Commit, error) bool) { yield(c, err) }
}

func cursorsOf(t tester, s *store) (all []backend.Cursor) {
	for c, err := range s.Feed(background, backend.Cursor{}) {
		require.NoError(t, err)
		all = append(all, backend.Cursor{Number: c.Number, ID: c.ID})
	}
	return all
}
