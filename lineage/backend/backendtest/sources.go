package backendtest

import (
	"math"
	"testing"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// testExpectedNames applies commits with expected branches and checkpoints.
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
		{"a branch that exists", backend.ErrExists, backend.Options{Branches: []backend.ExpectBranch{{Thread: in, Name: "main"}}}},
		{"a missing branch", backend.ErrNotFound, backend.Options{Branches: []backend.ExpectBranch{{Thread: in, Name: "side", Was: main}}}},
		{"another branch", backend.ErrConflict, backend.Options{Branches: []backend.ExpectBranch{{Thread: in, Name: "main", Was: &other}}}},
		{"a checkpoint that exists", backend.ErrExists, backend.Options{Checkpoints: []backend.ExpectCheckpoint{{Thread: in, Name: "here"}}}},
		{"a missing checkpoint", backend.ErrNotFound, backend.Options{Checkpoints: []backend.ExpectCheckpoint{{Thread: in, Name: "there", Was: here}}}},
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

// testFind finds messages by source id: in several threads, in several versions, in a
// thread that was deleted and created again, and in runs without a thread.
func testFind(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(text("one"), thread("t"), thread("u"), runOf("t", "r", structure.SpanRef{}), runOf("u", "q", structure.SpanRef{}), run("n", structure.SpanRef{}))
	version := func(ref structure.SpanRef, n uint64) *structure.Span {
		span := sourcedSpan(ref, "one", "x")
		span.Usages[0].Lookup = n
		return span
	}
	s.apply(version(at("r", 1), 1), version(at("q", 1), 1), version(at("n", 1), 1))
	s.refuse(backend.ErrExists, version(at("r", 2), 1))
	for i, n := range []uint64{3, 2, 240, 241, 242, 1 << 40, math.MaxUint64} {
		s.apply(version(at("r", uint64(2+i)), n))
		s.refuse(backend.ErrExists, version(at("r", uint64(3+i)), n))
	}
	s.restart()
	s.check()
	// A run keeps its home when the thread is created again.
	s.apply(deleteThread("t"))
	again := thread("t")
	again.Incarnation++
	r := run("new", structure.SpanRef{})
	r.Home = again.Home()
	s.apply(again, r, version(at("r", 9), 7), version(at("new", 1), 1))
	s.restart()
	s.check()
	// A run whose home does not exist yet is found once the thread is created.
	early := run("early", structure.SpanRef{})
	later := thread("later")
	early.Home = later.Home()
	s.apply(early, version(at("early", 1), 1))
	s.check()
	s.apply(later)
	s.check()
}

// testExpectedSources applies commits with expected source ids.
func testExpectedSources(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	s.apply(sourcedSpan(at("r", 4), "one", "x"))
	u := thread("u")
	s.apply(u, runOf("u", "q", structure.SpanRef{}), sourcedSpan(at("q", 1), "one", "x"))
	in, both := id[structure.ThreadID]("t"), []structure.SpanRef{at("q", 1), at("r", 4)}
	expect := func(source string, thread structure.ThreadID, spans ...structure.SpanRef) backend.Options {
		return backend.Options{Sources: []backend.ExpectSource{{SourceID: source, Thread: thread, Spans: spans}}}
	}
	s.refuseCommit(backend.ErrExists, s.commit(thread("v")), expect("x", in))
	s.refuseCommit(backend.ErrExists, s.commit(thread("v")), expect("x", structure.ThreadID{}))
	s.refuseCommit(backend.ErrConflict, s.commit(thread("v")), expect("x", structure.ThreadID{}, at("r", 4)))
	s.refuseCommit(backend.ErrConflict, s.commit(thread("v")), expect("y", in, at("r", 4)))
	s.refuseCommit(backend.ErrConflict, s.commit(thread("v")), expect("x", in, both...))
	s.applyCommit(s.commit(thread("v")), expect("x", in, at("r", 4)))
	s.applyCommit(s.commit(thread("w")), expect("x", structure.ThreadID{}, both...))
	s.applyCommit(s.commit(deleteThread("u")), expect("y", structure.ThreadID{}))
	s.applyCommit(s.commit(thread("x")), expect("x", structure.ThreadID{}, at("r", 4)))
}

// testSourceIDs finds branches and checkpoints by source id: in several threads, after
// a change, moved to another name, and reused after a deletion.
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
