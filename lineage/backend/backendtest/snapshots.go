package backendtest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// testSnapshot takes a snapshot after each of many commits and reads them all at
// the end.
func testSnapshot(t *testing.T, c Config) {
	c.Reopen = false
	s := newStore(t, c)
	steps := [][]structure.Record{
		talk(), {move("c", at("r", 1))}, {erase("two")}, told("r", 4, "four"), {text("two"), says(at("r", 5), "two")},
		{set("s", at("r", 1)), checkpoint("t", "p", at("r", 2)), summary("s", "c", "one", at("r", 1))},
		append([]structure.Record{run("q", at("r", 2))}, told("q", 1, "fork", "one")...),
		{deleteName(structure.KindBranch, "t", "main"), deleteContext("c")}, {thread("u")}, {deleteThread("t")}, talk()[:1],
	}
	type taken struct {
		backend.Snapshot
		want Facts
	}
	var all []taken
	for i := range len(steps) + 1 {
		for range 2 { // two of one state
			snapshot, err := s.Snapshot(background)
			require.NoError(t, err)
			all = append(all, taken{snapshot, nil})
		}
		if i < len(steps) {
			s.applyOnly(s.commit(steps[i]...), backend.Options{})
		}
	}
	again := NewModel()
	for i, commit := range append(s.model.feed, structure.Commit{}) {
		all[2*i].want, all[2*i+1].want = again.Facts(s.seen), again.Facts(s.seen)
		if i < len(s.model.feed) {
			_, err := again.apply(&commit, backend.Options{})
			require.NoError(t, err)
		}
	}
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { compareFacts(t, all[i].want, readFacts(t, all[i], s.seen)) })
	}
	wg.Wait()
	for i := range all {
		require.NoError(t, all[len(all)-1-i].Close())
		require.NoError(t, all[len(all)-1-i].Close(), "closing again is safe")
	}
	s.check()
}

// testSnapshotsMeanwhile reads snapshots from many goroutines during writes:
// each snapshot is consistent and does not change.
func testSnapshotsMeanwhile(t *testing.T, c Config) {
	c.Reopen = false
	s := newStore(t, c)
	s.apply(talk()...)
	const commits, readers = 60, 2
	written := make(chan struct{})
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for last := false; !last; {
				select {
				case <-written:
					last = true
				default:
				}
				snapshot, err := s.Snapshot(background)
				if err != nil {
					t.Error(err)
					return
				}
				var shared sync.WaitGroup
				shared.Go(func() { consistent(t, snapshot) })
				consistent(t, snapshot)
				shared.Wait()
				if err := snapshot.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range uint64(commits) {
		records := append(told("r", 4+i, fmt.Sprint("more ", i)), move("c", at("r", 4+i)))
		if i%10 == 0 {
			records = append(records, view(fmt.Sprint("fork ", i), "t", at("r", 4+i)))
		}
		s.applyOnly(s.commit(records...), backend.Options{Durability: backend.Normal})
	}
	close(written)
	wg.Wait()
	s.check()
}

// consistent checks the contexts of a reader for consistency.
func consistent(t *testing.T, r backend.Reader) {
	head, err := r.Head(background)
	if err != nil {
		t.Error(err)
		return
	}
	for v, err := range r.Contexts(background, structure.ThreadID{}, structure.ContextID{}) {
		if err != nil {
			t.Error(err)
			return
		}
		if err := consistentHistory(r, &v, head.Number); err != nil {
			t.Errorf("context %v at %v: %v", v.ID, v.Tip, err)
			return
		}
	}
}

func consistentHistory(r backend.Reader, v *backend.Context, head uint64) error {
	var last *backend.Step
	var digest structure.Digest
	position := uint64(0)
	for s, err := range r.Path(background, v.Tip, structure.Window{}, backend.PathOptions{Bodies: true}) {
		if err != nil {
			return err
		}
		last, digest = s, structure.NextDigest(digest, s.Span.Usages)
		if position++; s.Position != position || s.Commit > head {
			return fmt.Errorf("position %d of commit %d, expected %d of at most %d", s.Position, s.Commit, position, head)
		}
	}
	if v.Moved > head || last != nil && last.Span.Ref != v.Tip {
		return fmt.Errorf("history ends at %v, moved by commit %d of %d", last.Span.Ref, v.Moved, head)
	}
	if got, err := r.Digest(background, v.Tip); err != nil || got != digest {
		return fmt.Errorf("digest %v, expected %v: %w", got, digest, err)
	}
	return nil
}
