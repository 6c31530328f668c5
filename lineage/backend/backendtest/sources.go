package backendtest

import (
	"testing"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// testExpectedNames compares commits with the branches and checkpoints that they were
// made for.
func testExpectedNames(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	main, here := branch("t", "main", "c"), checkpoint("t", "here", at("r", 1))
	s.apply(here)
	other := *main
	other.SourceID = "x"
	moved := *here
	moved.Span = at("r", 2)
	in := main.Thread
	for _, tt := range []struct {
		name string
		want error
		o    backend.Options
	}{
		{"a branch that is there", backend.ErrExists, backend.Options{Branches: []backend.ExpectBranch{{Thread: in, Name: "main"}}}},
		{"a branch that is not there", backend.ErrNotFound, backend.Options{Branches: []backend.ExpectBranch{{Thread: in, Name: "side", Was: main}}}},
		{"another branch", backend.ErrConflict, backend.Options{Branches: []backend.ExpectBranch{{Thread: in, Name: "main", Was: &other}}}},
		{"a checkpoint that is there", backend.ErrExists, backend.Options{Checkpoints: []backend.ExpectCheckpoint{{Thread: in, Name: "here"}}}},
		{"a checkpoint that is not there", backend.ErrNotFound, backend.Options{Checkpoints: []backend.ExpectCheckpoint{{Thread: in, Name: "there", Was: here}}}},
		{"another checkpoint", backend.ErrConflict, backend.Options{Checkpoints: []backend.ExpectCheckpoint{{Thread: in, Name: "here", Was: &moved}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.t = t
			s.refuseCommit(tt.want, s.commit(thread("u")), tt.o)
		})
	}
	s.t = t
	s.applyCommit(s.commit(thread("u")), backend.Options{
		Branches:    []backend.ExpectBranch{{Thread: in, Name: "main", Was: main}, {Thread: in, Name: "side"}},
		Checkpoints: []backend.ExpectCheckpoint{{Thread: in, Name: "here", Was: here}, {Thread: in, Name: "there"}},
	})
}

// testSourceIDs follows the source ids of branches and checkpoints: in several threads,
// changed, taken over by another name, and free again after a deletion.
func testSourceIDs(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	point := func(of, name, sourceID string) *structure.Checkpoint {
		k := checkpoint(of, name, at("r", 1))
		k.SourceID = sourceID
		return k
	}
	s.apply(thread("u"), view("d", "u", at("r", 1)))
	s.apply(sourced(branch("t", "a", "c"), "x"), sourced(branch("u", "b", "d"), "x"), point("t", "a", "x"), point("u", "b", "x"))
	s.apply(sourced(branch("t", "a", "c"), "y"), point("t", "a", "y"))
	s.apply(sourced(branch("t", "b", "c"), "x"), point("t", "b", "x"))
	s.refuse(backend.ErrExists, sourced(branch("t", "c", "c"), "y"))
	s.refuse(backend.ErrExists, point("t", "c", "y"))
	// A deletion and a branch under another name in one commit rename it.
	s.apply(deleteName(structure.KindBranch, "t", "a"), sourced(branch("t", "renamed", "c"), "y"),
		deleteName(structure.KindCheckpoint, "t", "a"), point("t", "renamed", "y"))
	s.restart()
	s.check()
	s.apply(branch("t", "renamed", "c"), point("t", "renamed", "")) // without an id
	s.apply(deleteThread("u"))
	s.apply(thread("u"), view("d", "u", at("r", 1)), sourced(branch("u", "z", "d"), "x"), point("u", "z", "x"))
	s.restart()
	s.check()
}
