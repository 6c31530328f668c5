package write

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// What a transaction reads: its own changes, else the snapshot. What of that can be changed
// by others becomes an expectation, once, as the snapshot has it.

func isNotFound(err error) bool { return errors.Is(err, backend.ErrNotFound) }

// first reports whether something is read for the first time. What the transaction itself
// has made or changed is expected to be as it was before.
func (s *Stage) first(what any) bool {
	if s.read[what] {
		return false
	}
	s.read[what] = true
	return true
}

func missing(subject, id string) error {
	return &backend.SubjectError{Subject: subject, ID: id, Err: backend.ErrNotFound}
}

// Thread implements backend.Reader.
func (s *Stage) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if own, changed := s.threads[id]; changed {
		if own == nil {
			return nil, missing("thread", id.String())
		}
		is := *own
		return &is, nil
	}
	is, err := s.Reader.Thread(ctx, id)
	if err != nil && !isNotFound(err) {
		return nil, err
	}
	if s.first(id) {
		var was *structure.Thread
		if err == nil {
			was = owned(*is)
		}
		s.batch.ExpectThread(id, was)
	}
	return is, err
}

// Context implements backend.Reader.
func (s *Stage) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	if err := s.alive(); err != nil {
		return backend.Context{}, err
	}
	if own, changed := s.contexts[id]; changed {
		if own == nil || s.isGone(own.Thread) {
			return backend.Context{}, missing("context", id.String())
		}
		return *own, nil
	}
	is, err := s.Reader.Context(ctx, id)
	if err != nil && !isNotFound(err) {
		return backend.Context{}, err
	}
	if s.first(id) {
		var was *structure.Context
		if err == nil {
			was = owned(is.Context)
		}
		s.batch.ExpectContext(id, was)
	}
	if err == nil && s.isGone(is.Thread) {
		return backend.Context{}, missing("context", id.String())
	}
	return is, err
}

// isGone reports whether the transaction has deleted a thread.
func (s *Stage) isGone(id structure.ThreadID) bool {
	is, changed := s.threads[id]
	return changed && is == nil
}

// isOver reports whether the transaction has deleted a home, or made another in its place.
func (s *Stage) isOver(home structure.Home) bool {
	is, changed := s.threads[home.Thread]
	return changed && (is == nil || is.Home() != home)
}

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

// Value implements backend.Reader.
func (s *Stage) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	for is, err := range s.ValueHistory(ctx, key) {
		return is, err
	}
	return backend.Value{}, missing("value", key.Name())
}

// ValueHistory implements backend.Reader. Whatever is added to it changes the value, which
// becomes an expectation.
func (s *Stage) ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[backend.Value, error] {
	return func(yield func(backend.Value, error) bool) {
		if err := s.alive(); err != nil {
			yield(backend.Value{}, err)
			return
		}
		for _, is := range slices.Backward(s.values[key]) {
			if !s.lapsed(&is) && !yield(is, nil) {
				return
			}
		}
		if s.first(key) {
			is, err := s.Reader.Value(ctx, key)
			if err != nil && !isNotFound(err) {
				yield(backend.Value{}, err)
				return
			}
			s.batch.Values = append(s.batch.Values, backend.ExpectValue{Key: key, Commit: is.Commit})
		}
		for is, err := range s.Reader.ValueHistory(ctx, key) {
			if err == nil && s.lapsed(&is) {
				return
			}
			if !yield(is, err) || err != nil {
				return
			}
		}
	}
}

// lapsed reports whether the transaction has deleted what a value belongs to.
func (s *Stage) lapsed(v *backend.Value) bool {
	switch v.Owner.Scope {
	case structure.ThreadScope:
		return s.isOver(v.Home())
	case structure.ContextScope:
		is, changed := s.contexts[v.Owner.Context]
		return changed && is == nil
	}
	return false
}

// Run implements backend.Reader.
func (s *Stage) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	if own, ok := s.runs[id]; ok {
		return own, nil
	}
	return s.Reader.Run(ctx, id)
}

// Ancestry implements backend.Reader.
func (s *Stage) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	var all []structure.RunInfo
	for len(all) < limit && !id.IsZero() {
		own, ok := s.runs[id]
		if !ok {
			rest, err := s.Reader.Ancestry(ctx, id, limit-len(all))
			return append(all, rest...), err
		}
		all = append(all, own)
		id = own.Parent.Run
	}
	return all, nil
}

// Last implements backend.Reader.
func (s *Stage) Last(ctx context.Context, id structure.RunID) (structure.SpanRef, error) {
	if own := s.spans[id]; len(own) > 0 {
		return own[len(own)-1].Ref, nil
	}
	if _, own := s.runs[id]; own {
		return structure.SpanRef{}, nil
	}
	return s.Reader.Last(ctx, id)
}

// staged returns a span that the transaction adds, nil if it adds none there.
func (s *Stage) staged(at structure.SpanRef) *structure.Span {
	own := s.spans[at.Run]
	if len(own) == 0 || at.Seq < own[0].Ref.Seq || at.Seq > own[len(own)-1].Ref.Seq {
		return nil
	}
	return own[at.Seq-own[0].Ref.Seq]
}

// Path implements backend.Reader.
func (s *Stage) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	if s.staged(tip) == nil {
		return s.Reader.Path(ctx, tip, w, o) // what is behind a span of the store is there too
	}
	return func(yield func(*backend.Step, error) bool) {
		segments, err := structure.Segments(tip, w, backend.Runs(ctx, s))
		if err != nil {
			yield(nil, err)
			return
		}
		for _, segment := range segments {
			if !s.segment(ctx, segment, o, yield) {
				return
			}
		}
	}
}

// segment yields the spans of a segment, first those of the store.
func (s *Stage) segment(ctx context.Context, of structure.Segment, o backend.PathOptions, yield func(*backend.Step, error) bool) bool {
	stored := of.Last
	if own := s.spans[of.Run.ID]; len(own) > 0 {
		stored = min(stored, own[0].Ref.Seq-1)
	}
	if stored >= of.First {
		last := structure.SpanRef{Run: of.Run.ID, Seq: stored}
		for step, err := range s.Reader.Path(ctx, last, structure.Window{From: of.Run.Position(of.First)}, o) {
			if !yield(step, err) || err != nil {
				return false
			}
		}
	}
	for seq := max(of.First, stored+1); seq <= of.Last; seq++ {
		step := &backend.Step{Position: of.Run.Position(seq), Span: s.staged(structure.SpanRef{Run: of.Run.ID, Seq: seq})}
		if o.Bodies {
			ids := make([]content.ID, len(step.Span.Usages))
			for i := range ids {
				ids[i] = step.Span.Usages[i].Content
			}
			var err error
			if step.Blocks, err = s.Blocks(ctx, ids); err != nil {
				yield(nil, err)
				return false
			}
		}
		if !yield(step, nil) {
			return false
		}
	}
	return true
}

// Blocks implements backend.Reader.
func (s *Stage) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	blocks := make([]*structure.Block, len(ids))
	for i, id := range ids {
		if blocks[i] = s.blocks[id]; blocks[i] != nil {
			continue
		}
		stored, err := s.Reader.Blocks(ctx, ids[i:i+1])
		if err != nil {
			return nil, err
		}
		blocks[i] = stored[0]
	}
	return blocks, nil
}

// Has implements backend.Reader.
func (s *Stage) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	has, err := s.Reader.Has(ctx, ids)
	for i := range has {
		has[i] = has[i] || s.blocks[ids[i]] != nil
	}
	return has, err
}

// SpanSet implements backend.Reader.
func (s *Stage) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	if own := s.sets[id]; own != nil {
		is := *own
		return &is, nil
	}
	return s.Reader.SpanSet(ctx, id)
}

// Reflog implements backend.Reader. Each move of a context changes where it stands, which
// becomes an expectation.
func (s *Stage) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	return func(yield func(*structure.Reflog, error) bool) {
		if _, err := s.Context(ctx, id); err != nil && !isNotFound(err) {
			yield(nil, err)
			return
		}
		for r, err := range s.Reader.Reflog(ctx, id) {
			if !yield(r, err) || err != nil {
				return
			}
		}
		for _, r := range s.moves[id] {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Digest implements backend.Reader.
func (s *Stage) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	if s.staged(tip) != nil {
		return structure.Digest{}, outside("the digest of what is not committed yet")
	}
	return s.Reader.Digest(ctx, tip)
}

// LastMessage implements backend.Reader.
func (s *Stage) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	last, err := s.Reader.LastMessage(ctx, home)
	for run, spans := range s.spans {
		if is, err := s.Run(ctx, run); err != nil || is.Home != home {
			continue
		}
		for _, span := range spans {
			for i := range span.Usages {
				if at := span.Usages[i].CreatedAt; at.After(last) {
					last = at
				}
			}
		}
	}
	return last, err
}

// Listings whose result others can change in ways that are no expectation.

func (s *Stage) Threads(context.Context, structure.ThreadID) iter.Seq2[*structure.Thread, error] {
	return refused[*structure.Thread]("a list of threads")
}

func (s *Stage) ListThreads(context.Context, backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
	return refused[backend.ThreadListing]("a list of threads")
}

func (s *Stage) ThreadsEnding(context.Context, [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
	return refused[*structure.Thread]("a list of threads")
}

func (s *Stage) Contexts(context.Context, structure.ThreadID, structure.ContextID) iter.Seq2[backend.Context, error] {
	return refused[backend.Context]("a list of contexts")
}

func (s *Stage) Children(context.Context, structure.ContextID, structure.ContextID) iter.Seq2[backend.Context, error] {
	return refused[backend.Context]("a list of contexts")
}

func (s *Stage) RunsOf(context.Context, structure.ThreadID, structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return refused[structure.RunInfo]("a list of runs")
}

func (s *Stage) Forks(context.Context, structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return refused[structure.RunInfo]("a list of runs")
}

func (s *Stage) ForksAt(context.Context, structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return refused[structure.RunInfo]("a list of runs")
}

func (s *Stage) Alternatives(context.Context, structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return refused[structure.SpanRef]("a list of alternatives")
}

func (s *Stage) Summaries(context.Context, structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return refused[*structure.Summary]("a list of summaries")
}

func (s *Stage) Values(context.Context, structure.Owner, string, string) iter.Seq2[backend.Value, error] {
	return refused[backend.Value]("a list of values")
}

func (s *Stage) ValueOwners(context.Context, structure.Scope, string) iter.Seq2[string, error] {
	return refused[string]("a list of owners of values")
}

func (s *Stage) Where(context.Context, content.ID) iter.Seq2[structure.UsageID, error] {
	return refused[structure.UsageID]("a list of usages")
}

func (s *Stage) Stats(context.Context) (backend.Stats, error) {
	return backend.Stats{}, outside("counting")
}
