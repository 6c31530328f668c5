package lineage_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
)

// takingContext is an operation on a context with another context as an argument.
type takingContext struct {
	name string
	do   func(c, other *lineage.Context) error
}

// takingContexts work with any two contexts of a store.
var takingContexts = []takingContext{
	{"merge", func(c, other *lineage.Context) error { _, err := c.Merge(bg, other); return err }},
	{"send", func(c, other *lineage.Context) error {
		entries, err := c.Last(bg, 1)
		if err == nil {
			_, err = c.Send(bg, other, entries[0].Item())
		}
		return err
	}},
}

// An id of a context of another store is refused, even if it exists in both: a copy of a store has
// the same ids.
func TestContextOfAnotherStore(t *testing.T) {
	s := newStore(t)
	thread, c := newThread(t, s)
	say(t, c, "one")
	dir := filepath.Join(t.TempDir(), "copy")
	_, err := s.Backup(bg, dir, lineage.BackupOptions{})
	require.NoError(t, err)
	same, err := open(t, dir).Context(bg, c.ID())
	require.NoError(t, err)
	stranger := newContext(t, newStore(t), "one")

	operations := append(takingContexts,
		takingContext{"choose", func(c, other *lineage.Context) error { return c.Choose(bg, other) }},
	)
	head, err := s.View().Head(bg)
	require.NoError(t, err)
	for _, test := range operations {
		t.Run(test.name, func(t *testing.T) {
			for _, other := range []*lineage.Context{same, stranger} {
				err := test.do(c, other)
				require.ErrorIs(t, err, lineage.ErrInvalid)
				require.ErrorContains(t, err, other.ID().String())
				require.ErrorContains(t, err, "it belongs to another store")
			}
			for _, none := range []*lineage.Context{nil, new(lineage.Context)} {
				require.ErrorIs(t, test.do(c, none), lineage.ErrInvalid)
			}
		})
	}
	t.Run("create branch", func(t *testing.T) {
		for _, other := range []*lineage.Context{same, stranger} {
			_, err := thread.CreateBranch(bg, "b", lineage.BranchOptions{From: other})
			require.ErrorIs(t, err, lineage.ErrInvalid)
			require.ErrorContains(t, err, other.ID().String())
		}
		_, err := thread.CreateBranch(bg, "b", lineage.BranchOptions{From: new(lineage.Context)})
		require.ErrorIs(t, err, lineage.ErrInvalid)
	})
	t.Run("name branch", func(t *testing.T) {
		for _, other := range []*lineage.Context{same, stranger, nil, new(lineage.Context)} {
			require.ErrorIs(t, thread.NameBranch(bg, "b", other), lineage.ErrInvalid)
		}
	})
	after, err := s.View().Head(bg)
	require.NoError(t, err)
	require.Equal(t, head, after, "it failed but left something behind")
	require.Equal(t, []string{"one"}, texts(t, stranger))
}

// Stores on one engine are the same store.
func TestContextOfTheSameEngine(t *testing.T) {
	s := newStore(t)
	also := lineage.New(write.Of(s).Engine())
	for _, test := range takingContexts {
		t.Run(test.name, func(t *testing.T) {
			require.NoError(t, test.do(newContext(t, s, "one"), newContext(t, also, "two")))
		})
	}
	thread, c := newThread(t, s)
	other := newContext(t, also, "one")
	branch, err := thread.CreateBranch(bg, "b", lineage.BranchOptions{From: other})
	require.NoError(t, err)
	require.Equal(t, []string{"one"}, texts(t, branch))
	offered, err := c.Alternatives(bg, lineage.Overrides{})
	require.NoError(t, err)
	filled, err := also.Context(bg, offered[0].ID())
	require.NoError(t, err)
	say(t, filled, "two")
	require.NoError(t, c.Choose(bg, filled))
}
