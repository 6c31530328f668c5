package lineage_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// Two threads have branches, checkpoints and messages with the same names and ids. Every method of a thread that is
// given a name or an id means its own.
func TestThreadsWithTheSameNames(t *testing.T) {
	s := newStore(t)
	var threads []*lineage.Thread
	for _, user := range []string{"alice", "bob"} {
		thread, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: "of " + user, UserID: user})
		require.NoError(t, err)
		side, err := thread.CreateBranch(bg, "side", lineage.BranchOptions{SourceID: "side of " + user})
		require.NoError(t, err)
		spans, err := side.Extend(bg, lineage.User("says "+user).WithID("1"))
		require.NoError(t, err)
		_, err = thread.SetCheckpoint(bg, "here", lineage.CheckpointOptions{At: spans[0], SourceID: "k"})
		require.NoError(t, err)
		threads = append(threads, thread)
	}
	for i, user := range []string{"alice", "bob"} {
		own, other := threads[i], threads[1-i]
		id := own.ID()
		hers, err := other.BranchContext(bg, "side")
		require.NoError(t, err)
		before, err := hers.Info(bg)
		require.NoError(t, err)
		calls := map[string]func() error{
			"Branch": func() error {
				b, err := own.Branch(bg, "side")
				require.Equal(t, id, b.Thread)
				require.Equal(t, "side of "+user, b.SourceID)
				return err
			},
			"Checkpoint": func() error {
				k, err := own.Checkpoint(bg, "here")
				require.NoError(t, err)
				entries, err := s.Span(bg, k.Span)
				require.Equal(t, "says "+user, string(entries[0].Body))
				return err
			},
			"CreateBranch": func() error {
				_, err := own.CreateBranch(bg, "newer", lineage.BranchOptions{SourceID: map[string]string{"alice": "side of bob", "bob": "side of alice"}[user]})
				require.ErrorIs(t, err, lineage.ErrExists)
				return nil
			},
			"DeleteBranch": func() error {
				_, err := other.CreateBranch(bg, "passing by", lineage.BranchOptions{})
				require.NoError(t, err)
				_, err = own.CreateBranch(bg, "passing by", lineage.BranchOptions{})
				require.NoError(t, err)
				require.NoError(t, own.DeleteBranch(bg, "passing by"))
				return other.DeleteBranch(bg, "passing by")
			},
			"DeleteCheckpoint": func() error { return own.DeleteCheckpoint(bg, "there") },
			"Find": func() error {
				e, err := own.Find(bg, "1")
				require.Equal(t, "says "+user, string(e.Body))
				return err
			},
			"AddAfter": func() error {
				spans, err := own.AddAfter(bg, lineage.SpanRef{}, lineage.User("hangs "+user).WithID("2"))
				require.NoError(t, err)
				e, err := own.Find(bg, "2")
				require.Equal(t, spans[0], e.Span)
				return err
			},
			"NameBranch": func() error {
				require.ErrorIs(t, own.NameBranch(bg, "theirs", hers), lineage.ErrInvalid)
				return nil
			},
			"BranchContext": func() error {
				c, err := own.BranchContext(bg, "side")
				require.NoError(t, err)
				info, err := c.Info(bg)
				require.Equal(t, id, info.Thread)
				return err
			},
			"OpenBranch": func() error {
				c, created, err := own.OpenBranch(bg, "side", lineage.BranchOptions{Empty: true, SourceID: "side of " + user})
				require.NoError(t, err)
				require.False(t, created)
				info, err := c.Info(bg)
				require.NoError(t, err)
				require.Equal(t, id, info.Thread)
				_, _, err = own.OpenBranch(bg, "side", lineage.BranchOptions{Empty: true, SourceID: map[string]string{"alice": "side of bob", "bob": "side of alice"}[user]})
				require.ErrorIs(t, err, lineage.ErrExists)
				return nil
			},
			"SetCheckpoint": func() error { _, err := own.SetCheckpoint(bg, "there", lineage.CheckpointOptions{}); return err },
			"Switch":        func() error { return own.Switch(bg, "side") },
		}
		methods := reflect.TypeFor[*lineage.Thread]()
		for i := range methods.NumMethod() {
			m := methods.Method(i)
			for k := range m.Type.NumIn() {
				if in := m.Type.In(k); in.Kind() == reflect.String || in == reflect.TypeFor[[]lineage.Item]() {
					require.Contains(t, calls, m.Name, "a method that is given a name or an id")
				}
			}
		}
		require.NoError(t, calls["Switch"]())
		require.NoError(t, calls["SetCheckpoint"]())
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			require.NoError(t, calls[name](), name)
		}
		after, err := hers.Info(bg)
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
}
