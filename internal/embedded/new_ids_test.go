package embedded

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Ids that isNew reports were never added and were not created before the store was
// opened. Within the window every new id is reported.
func TestCreatedIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opened := rapid.Uint64Range(0, 3*createdWindow).Draw(t, "opened")
		m := newCreatedIDs(opened)
		added := map[uint64]bool{}
		last := opened
		near := func(label string) uint64 {
			return max(last+100, rapid.Uint64Range(0, 1000+2*createdWindow).Draw(t, label)) - 100
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				n := last + rapid.Uint64Range(0, 70).Draw(t, "on")
				n -= min(n, rapid.Uint64Range(0, 70).Draw(t, "back"))
				m.add(n)
				added[n] = true
				last = max(last, n)
			},
			"add far away": func(t *rapid.T) {
				n := near("far")
				if rapid.IntRange(0, 9).Draw(t, "seldom") == 0 {
					n = last + rapid.Uint64Range(0, 3*createdWindow).Draw(t, "on")
				}
				m.add(n)
				added[n] = true
				last = max(last, n)
			},
			"": func(t *rapid.T) {
				for n := uint64(0); n <= last+2; n++ {
					known := added[n] || n <= opened
					switch isNew := m.isNew(n); {
					case isNew && known:
						t.Fatalf("%d was added, but is new", n)
					case !isNew && !known && n+createdWindow > last:
						t.Fatalf("%d was not added, but is not new", n)
					}
				}
			},
		})
	})
}

// A run cannot be created twice, nor can a context be replaced by another, even if their
// ids were created in this process, in any order, and before the store was opened.
func TestCreatedIDsExistOnce(t *testing.T) {
	dir := t.TempDir()
	e, err := Open(background, dir, Options{})
	require.NoError(t, err)
	apply := func(records ...structure.Record) error {
		_, err := e.Apply(background, &structure.Commit{Records: records}, backend.Options{Durability: backend.Normal})
		return err
	}
	runs, contexts := make([]structure.RunID, 5), make([]structure.ContextID, 5)
	for i := range runs {
		runs[i], contexts[i] = structure.NewID[structure.RunID](), structure.NewID[structure.ContextID]()
	}
	parent := structure.NewID[structure.ContextID]()
	require.NoError(t, apply(&structure.Context{ID: parent}))
	require.ErrorIs(t, apply(&structure.Run{ID: runs[2]}, &structure.Run{ID: runs[2]}), backend.ErrExists)
	again := func() {
		for i := range runs {
			require.ErrorIs(t, apply(&structure.Run{ID: runs[i]}), backend.ErrExists, "%d", i)
			require.ErrorIs(t, apply(&structure.Context{ID: contexts[i], Parent: parent}), backend.ErrExists, "%d", i)
		}
	}
	for _, i := range []int{3, 0, 4, 2, 1} {
		require.NoError(t, apply(&structure.Run{ID: runs[i]}))
		require.NoError(t, apply(&structure.Context{ID: contexts[i]}))
	}
	again()
	require.NoError(t, e.Close())
	e, err = Open(background, dir, Options{})
	require.NoError(t, err)
	again()
	require.NoError(t, e.Close())
}
