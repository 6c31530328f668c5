package embedded

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// scaled is a store with a thread of n contexts with branches and reflogs.
type scaled struct {
	*Engine
	t        *testing.T
	thread   *structure.Thread
	contexts []*structure.Context
}

func newScaled(t *testing.T, n int) *scaled {
	t.Helper()
	s := &scaled{t: t, thread: &structure.Thread{ID: structure.NewID[structure.ThreadID]()}}
	var err error
	s.Engine, err = Open(background, t.TempDir(), Options{Durability: backend.Normal})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	records := []structure.Record{s.thread}
	for i := range n {
		c := &structure.Context{ID: structure.NewID[structure.ContextID](), Thread: s.thread.ID}
		s.contexts = append(s.contexts, c)
		records = append(records, c,
			&structure.Branch{Thread: s.thread.ID, Name: fmt.Sprint("branch ", i), Context: c.ID},
			&structure.Tip{Context: c.ID}, &structure.Reflog{Context: c.ID, Reason: "test"})
	}
	s.cost(records...)
	return s
}

// cost applies a commit and returns the number of entries that it scanned and changed.
func (s *scaled) cost(records ...structure.Record) int {
	s.t.Helper()
	before := s.state.Scanned
	_, err := s.Apply(background, &structure.Commit{Records: records}, backend.Options{})
	require.NoError(s.t, err)
	return int(s.state.Scanned-before) + len(s.builder.Batch)
}

func (s *scaled) deleteBranch(i int) []structure.Record {
	return []structure.Record{
		&structure.Deletion{Subject: structure.KindBranch, Thread: s.thread.ID, Name: fmt.Sprint("branch ", i), At: time.Now()},
		&structure.Deletion{Subject: structure.KindContext, Context: s.contexts[i].ID, At: time.Now()},
	}
}

// The index accesses of a commit do not grow with the store, and those of a large commit
// grow linearly with the commit.
//
//test:norace
func TestCommitsDoNotGrow(t *testing.T) {
	costs := func(n int) map[string]int {
		s := newScaled(t, n)
		moved := s.contexts[n/2].ID
		unnamed := &structure.Context{ID: structure.NewID[structure.ContextID](), Thread: s.thread.ID, Parent: moved}
		costs := map[string]int{
			"delete a branch": s.cost(s.deleteBranch(n / 3)...),
			"fork":            s.cost(unnamed),
			"move":            s.cost(&structure.Tip{Context: moved}),
			"move again":      s.cost(&structure.Tip{Context: moved}),
			"delete context":  s.cost(&structure.Deletion{Subject: structure.KindContext, Context: unnamed.ID, At: time.Now()}),
			"name": s.cost(&structure.Deletion{Subject: structure.KindBranch, Thread: s.thread.ID, Name: fmt.Sprint("branch ", n/2), At: time.Now()},
				&structure.Branch{Thread: s.thread.ID, Name: "another", Context: moved}),
		}
		// Half of everything, in one commit.
		var half []structure.Record
		for i := range n / 4 {
			half = append(half, s.deleteBranch(i)...)
		}
		for i := range n / 4 {
			c := &structure.Context{ID: structure.NewID[structure.ContextID](), Thread: s.thread.ID}
			half = append(half, c, &structure.Branch{Thread: s.thread.ID, Name: fmt.Sprint("new ", i), Context: c.ID})
		}
		costs["many, each"] = s.cost(half...) / (n / 4)
		costs["delete the thread, each"] = s.cost(&structure.Deletion{Subject: structure.KindThread, Thread: s.thread.ID, At: time.Now()}) / n
		return costs
	}
	few, many := costs(100), costs(10_000)
	t.Log(few, many)
	for name, cost := range few {
		require.LessOrEqual(t, many[name], 2*cost, "%s costs %d with 100 and %d with 10,000", name, cost, many[name])
	}
	require.LessOrEqual(t, many["fork"], 3, "its own entries")
	require.LessOrEqual(t, many["move again"], 1)
}
