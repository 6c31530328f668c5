package write

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

type branchRead name

// Branch implements backend.Reader.
func (s *Stage) Branch(ctx context.Context, thread structure.ThreadID, as string) (*structure.Branch, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	key := name{thread, as}
	if own, changed := s.branches[key]; changed {
		if own == nil {
			return nil, missing("branch", as)
		}
		is := *own
		return &is, nil
	}
	is, err := s.Reader.Branch(ctx, thread, as)
	if err != nil && !isNotFound(err) {
		return nil, err
	}
	if s.first(branchRead(key)) {
		var was *structure.Branch
		if err == nil {
			was = owned(*is)
		}
		s.batch.Branches = append(s.batch.Branches, backend.ExpectBranch{Thread: thread, Name: as, Was: was})
	}
	return is, err
}

type checkpointRead name

// Checkpoint implements backend.Reader.
func (s *Stage) Checkpoint(ctx context.Context, thread structure.ThreadID, as string) (*structure.Checkpoint, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	key := name{thread, as}
	if own, changed := s.checkpoints[key]; changed {
		if own == nil {
			return nil, missing("checkpoint", as)
		}
		is := *own
		return &is, nil
	}
	is, err := s.Reader.Checkpoint(ctx, thread, as)
	if err != nil && !isNotFound(err) {
		return nil, err
	}
	if s.first(checkpointRead(key)) {
		var was *structure.Checkpoint
		if err == nil {
			was = owned(*is)
		}
		s.batch.Checkpoints = append(s.batch.Checkpoints, backend.ExpectCheckpoint{Thread: thread, Name: as, Was: was})
	}
	return is, err
}

// Names of a thread. Whoever changes one states the thread anew, so that the state of the
// thread is what is expected of them all.

// Branches implements backend.Reader.
func (s *Stage) Branches(ctx context.Context, thread structure.ThreadID, prefix, after string) iter.Seq2[*structure.Branch, error] {
	return func(yield func(*structure.Branch, error) bool) {
		own := make(map[string]*structure.Branch)
		for key, is := range s.branches {
			if key.thread == thread && strings.HasPrefix(key.name, prefix) && key.name > after {
				own[key.name] = is
			}
		}
		of := func(b *structure.Branch) string { return b.Name }
		s.named(ctx, thread, merged(s.Reader.Branches(ctx, thread, prefix, after), own, of))(yield)
	}
}

// BranchesOf implements backend.Reader.
func (s *Stage) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	return s.matching(ctx, thread, s.Reader.BranchesOf(ctx, thread, id), func(b *structure.Branch) bool { return b.Context == id })
}

// BranchesBySource implements backend.Reader.
func (s *Stage) BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	if thread.IsZero() {
		return refused[*structure.Branch]("a search for a branch in all threads")
	}
	return s.matching(ctx, thread, s.Reader.BranchesBySource(ctx, sourceID, thread), func(b *structure.Branch) bool { return b.SourceID == sourceID })
}

// matching yields the branches of a thread that are found, and those of the transaction that
// match.
func (s *Stage) matching(ctx context.Context, thread structure.ThreadID, found iter.Seq2[*structure.Branch, error], match func(*structure.Branch) bool) iter.Seq2[*structure.Branch, error] {
	return func(yield func(*structure.Branch, error) bool) {
		own := make(map[string]*structure.Branch)
		for key, is := range s.branches {
			if key.thread == thread {
				if own[key.name] = is; is != nil && !match(is) {
					own[key.name] = nil
				}
			}
		}
		s.named(ctx, thread, merged(found, own, func(b *structure.Branch) string { return b.Name }))(yield)
	}
}

// named expects a thread to stay as it is while its names are read.
func (s *Stage) named(ctx context.Context, thread structure.ThreadID, names iter.Seq2[*structure.Branch, error]) iter.Seq2[*structure.Branch, error] {
	return func(yield func(*structure.Branch, error) bool) {
		if _, err := s.Thread(ctx, thread); err != nil && !isNotFound(err) {
			yield(nil, err)
			return
		}
		names(yield)
	}
}

// Checkpoints implements backend.Reader.
func (s *Stage) Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error] {
	return s.checkpointsOf(ctx, thread, s.Reader.Checkpoints(ctx, thread, after), func(c *structure.Checkpoint) bool { return c.Name > after })
}

// CheckpointsBySource implements backend.Reader.
func (s *Stage) CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	if thread.IsZero() {
		return refused[*structure.Checkpoint]("a search for a checkpoint in all threads")
	}
	return s.checkpointsOf(ctx, thread, s.Reader.CheckpointsBySource(ctx, sourceID, thread), func(c *structure.Checkpoint) bool { return c.SourceID == sourceID })
}

func (s *Stage) checkpointsOf(ctx context.Context, thread structure.ThreadID, found iter.Seq2[*structure.Checkpoint, error], match func(*structure.Checkpoint) bool) iter.Seq2[*structure.Checkpoint, error] {
	return func(yield func(*structure.Checkpoint, error) bool) {
		if _, err := s.Thread(ctx, thread); err != nil && !isNotFound(err) {
			yield(nil, err)
			return
		}
		own := make(map[string]*structure.Checkpoint)
		for key, is := range s.checkpoints {
			if key.thread == thread {
				if own[key.name] = is; is != nil && !match(is) {
					own[key.name] = nil
				}
			}
		}
		merged(found, own, func(c *structure.Checkpoint) string { return c.Name })(yield)
	}
}

// merged yields what is found and not among the own ones, which are nil where they are gone,
// and these, in the order of their names.
func merged[T any](found iter.Seq2[*T, error], own map[string]*T, nameOf func(*T) string) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		var rest []*T
		for _, is := range own {
			if is != nil {
				rest = append(rest, is)
			}
		}
		slices.SortFunc(rest, func(a, b *T) int { return strings.Compare(nameOf(a), nameOf(b)) })
		next := func(before string, all bool) bool {
			for len(rest) > 0 && (all || nameOf(rest[0]) < before) {
				is := *rest[0]
				if rest = rest[1:]; !yield(&is, nil) {
					return false
				}
			}
			return true
		}
		for is, err := range found {
			if err != nil {
				yield(nil, err)
				return
			}
			if _, changed := own[nameOf(is)]; changed {
				continue
			}
			if !next(nameOf(is), false) || !yield(is, nil) {
				return
			}
		}
		next("", true)
	}
}
