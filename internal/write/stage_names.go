package write

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Branch implements backend.Reader.
func (s *Stage) Branch(ctx context.Context, thread structure.ThreadID, as string) (*structure.Branch, error) {
	return read(s, s.branches, branchName{thread, as}, "branch", as,
		func() (*structure.Branch, error) { return s.Reader.Branch(ctx, thread, as) },
		func(was *structure.Branch) {
			s.batch.Branches = append(s.batch.Branches, backend.ExpectBranch{Thread: thread, Name: as, Was: was})
		})
}

// Checkpoint implements backend.Reader.
func (s *Stage) Checkpoint(ctx context.Context, thread structure.ThreadID, as string) (*structure.Checkpoint, error) {
	return read(s, s.checkpoints, checkpointName{thread, as}, "checkpoint", as,
		func() (*structure.Checkpoint, error) { return s.Reader.Checkpoint(ctx, thread, as) },
		func(was *structure.Checkpoint) {
			s.batch.Checkpoints = append(s.batch.Checkpoints, backend.ExpectCheckpoint{Thread: thread, Name: as, Was: was})
		})
}

// Branches implements backend.Reader.
func (s *Stage) Branches(ctx context.Context, thread structure.ThreadID, prefix, after string) iter.Seq2[*structure.Branch, error] {
	return listed(ctx, s, thread, s.Reader.Branches(ctx, thread, prefix, after), s.branches, nameOfBranch,
		func(b *structure.Branch) bool { return strings.HasPrefix(b.Name, prefix) && b.Name > after })
}

// BranchesOf implements backend.Reader.
func (s *Stage) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	return listed(ctx, s, thread, s.Reader.BranchesOf(ctx, thread, id), s.branches, nameOfBranch,
		func(b *structure.Branch) bool { return b.Context == id })
}

// BranchesBySource implements backend.Reader.
func (s *Stage) BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	if thread.IsZero() {
		return s.branchesAnywhere(ctx, sourceID)
	}
	return listed(ctx, s, thread, s.Reader.BranchesBySource(ctx, sourceID, thread), s.branches, nameOfBranch,
		func(b *structure.Branch) bool { return b.SourceID == sourceID })
}

// branchesAnywhere yields the branches with a source id in all threads. No expectation is needed: the id of a
// branch's context is derived from the source id, so two cannot be added.
func (s *Stage) branchesAnywhere(ctx context.Context, sourceID string) iter.Seq2[*structure.Branch, error] {
	return func(yield func(*structure.Branch, error) bool) {
		threads := make(map[structure.ThreadID]bool)
		for key, b := range s.branches {
			if b != nil && b.SourceID == sourceID {
				threads[key.thread] = true
			}
		}
		for b, err := range s.Reader.BranchesBySource(ctx, sourceID, structure.ThreadID{}) {
			if err != nil {
				yield(nil, err)
				return
			}
			threads[b.Thread] = true
		}
		for _, thread := range slices.SortedFunc(maps.Keys(threads), structure.ThreadID.Compare) {
			for b, err := range s.BranchesBySource(ctx, sourceID, thread) {
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
}

// Checkpoints implements backend.Reader.
func (s *Stage) Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error] {
	return listed(ctx, s, thread, s.Reader.Checkpoints(ctx, thread, after), s.checkpoints, nameOfCheckpoint,
		func(c *structure.Checkpoint) bool { return c.Name > after })
}

// CheckpointsBySource implements backend.Reader.
func (s *Stage) CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	if thread.IsZero() {
		return refused[*structure.Checkpoint]("a search for a checkpoint in all threads")
	}
	return listed(ctx, s, thread, s.Reader.CheckpointsBySource(ctx, sourceID, thread), s.checkpoints, nameOfCheckpoint,
		func(c *structure.Checkpoint) bool { return c.SourceID == sourceID })
}

func nameOfBranch(b *structure.Branch) string         { return b.Name }
func nameOfCheckpoint(c *structure.Checkpoint) string { return c.Name }

// listed yields names of a thread: those of the snapshot, and matching ones of the transaction. The state of
// the thread becomes an expectation, because each change of a name changes it.
func listed[K branchName | checkpointName, T any](
	ctx context.Context, s *Stage, thread structure.ThreadID, found iter.Seq2[*T, error], changed map[K]*T, nameOf func(*T) string, match func(*T) bool,
) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		if _, err := s.Thread(ctx, thread); err != nil && !isNotFound(err) {
			yield(nil, err)
			return
		}
		own := make(map[string]*T)
		for key, record := range changed {
			k := branchName(key)
			if k.thread != thread {
				continue
			}
			if own[k.name] = record; record != nil && !match(record) {
				own[k.name] = nil
			}
		}
		merged(found, own, nameOf)(yield)
	}
}

// merged merges the names of the snapshot with those of the transaction, in order. An entry of own replaces
// the name in the snapshot; nil removes it.
func merged[T any](found iter.Seq2[*T, error], own map[string]*T, nameOf func(*T) string) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		var added []*T
		for _, record := range own {
			if record != nil {
				added = append(added, record)
			}
		}
		slices.SortFunc(added, func(a, b *T) int { return strings.Compare(nameOf(a), nameOf(b)) })
		yieldAdded := func(n int) bool {
			for _, record := range added[:n] {
				c := *record
				if !yield(&c, nil) {
					return false
				}
			}
			added = added[n:]
			return true
		}
		for record, err := range found {
			if err != nil {
				yield(nil, err)
				return
			}
			name := nameOf(record)
			if _, changed := own[name]; changed {
				continue
			}
			before, _ := slices.BinarySearchFunc(added, name, func(a *T, name string) int { return strings.Compare(nameOf(a), name) })
			if !yieldAdded(before) || !yield(record, nil) {
				return
			}
		}
		yieldAdded(len(added))
	}
}
