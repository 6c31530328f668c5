package backendtest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
)

// testCursors compares the commit ids of all cursors, and checks that a cursor with an id of
// another store is refused.
func testCursors(t *testing.T, c Config) {
	s := newStore(t, c)
	head, err := s.Head(background)
	require.NoError(t, err)
	require.Zero(t, head)
	var all []backend.Cursor
	for i := range 6 {
		receipt := s.apply(thread(fmt.Sprint(i)))
		require.Equal(t, uint64(i+1), receipt.Number)
		require.NotZero(t, receipt.ID)
		all = append(all, receipt.Cursor)
		if i%2 == 0 {
			s.restart()
		}
		s.follow(all)
	}
	s.refuse(backend.ErrInvalid)
	s.follow(all)
}

// follow compares Head, Feed, Wait and snapshots with the receipts of all commits.
func (s *store) follow(all []backend.Cursor) {
	s.t.Helper()
	last := all[len(all)-1]
	snapshot, err := s.Snapshot(background)
	require.NoError(s.t, err)
	for _, r := range []backend.Reader{s, snapshot} {
		head, err := r.Head(background)
		require.NoError(s.t, err)
		require.Equal(s.t, last, head)
	}
	require.NoError(s.t, snapshot.Close())
	for i := range len(all) + 1 {
		var after backend.Cursor
		if i > 0 {
			after = all[i-1]
		}
		var got []backend.Cursor
		for _, commit := range list(s.t, s.Feed(background, after)) {
			got = append(got, backend.Cursor{Number: commit.Number, ID: commit.ID})
		}
		require.Equal(s.t, append([]backend.Cursor(nil), all[i:]...), got)
		if i < len(all) {
			arrived, err := s.Wait(background, after)
			require.NoError(s.t, err)
			require.Equal(s.t, last, arrived)
		}
		if i == 0 {
			continue
		}
		s.diverged(backend.Cursor{Number: after.Number, ID: after.ID + 1})
		s.diverged(backend.Cursor{Number: last.Number + 1, ID: after.ID})
	}
}

// diverged checks that a cursor is refused.
func (s *store) diverged(c backend.Cursor) {
	s.t.Helper()
	_, err := s.Wait(background, c)
	for _, err := range []error{err, firstError(s.Feed(background, c))} {
		require.ErrorIs(s.t, err, backend.ErrDiverged)
		var diverged *backend.DivergedError
		require.True(s.t, errors.As(err, &diverged))
		require.Equal(s.t, c, diverged.After)
		if common := diverged.Common; common.Number > 0 {
			require.LessOrEqual(s.t, common.Number, s.head())
			require.NoError(s.t, firstError(s.Feed(background, common)))
		}
	}
}
