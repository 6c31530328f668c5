package judge_test

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// rows is a state built from effects alone, like tables of a database.
type rows struct {
	threads     map[structure.ThreadID]*structure.Thread
	contexts    map[structure.ContextID]backend.Context
	remnants    map[structure.ContextID]*structure.Remnant
	messages    map[structure.Home]int64
	runs        map[structure.RunID]structure.RunInfo
	ends        map[structure.RunID]judge.End
	spans       map[structure.SpanRef]structure.Digest
	sets        map[structure.SpanSetID]*structure.SpanSet
	lookups     map[judge.Lookup]structure.SpanRef
	branchFrom  map[judge.SourceID]string
	pointFrom   map[judge.SourceID]string
	branches    map[judge.Name]*structure.Branch
	checkpoints map[judge.Name]*structure.Checkpoint
	summaries   []judge.SummaryAt
	reflog      []reflogAt
	blocks      map[content.ID]int64
	erased      map[content.ID]bool
	chunks      map[content.Key][]byte
	values      map[structure.ValueKey]valueAt
	counts      judge.Counts
}

type valueAt struct {
	commit uint64
	json   string
}

type reflogAt struct {
	context structure.ContextID
	commit  uint64
	record  int
}

func newRows() *rows {
	return &rows{
		threads: map[structure.ThreadID]*structure.Thread{}, contexts: map[structure.ContextID]backend.Context{},
		remnants: map[structure.ContextID]*structure.Remnant{},
		messages: map[structure.Home]int64{}, runs: map[structure.RunID]structure.RunInfo{},
		ends: map[structure.RunID]judge.End{}, spans: map[structure.SpanRef]structure.Digest{},
		sets: map[structure.SpanSetID]*structure.SpanSet{}, lookups: map[judge.Lookup]structure.SpanRef{},
		branchFrom: map[judge.SourceID]string{}, pointFrom: map[judge.SourceID]string{},
		branches: map[judge.Name]*structure.Branch{}, checkpoints: map[judge.Name]*structure.Checkpoint{},
		blocks: map[content.ID]int64{}, erased: map[content.ID]bool{}, chunks: map[content.Key][]byte{},
		values: map[structure.ValueKey]valueAt{},
	}
}

// put updates a table with the current state of a key.
func put[K comparable, V any](table map[K]V, k K, v V, there bool) {
	if there {
		table[k] = v
	} else {
		delete(table, k)
	}
}

func (s *rows) clone() *rows {
	return &rows{
		threads: maps.Clone(s.threads), contexts: maps.Clone(s.contexts), remnants: maps.Clone(s.remnants), messages: maps.Clone(s.messages),
		runs: maps.Clone(s.runs), ends: maps.Clone(s.ends), spans: maps.Clone(s.spans), sets: maps.Clone(s.sets),
		lookups: maps.Clone(s.lookups), branchFrom: maps.Clone(s.branchFrom), pointFrom: maps.Clone(s.pointFrom), branches: maps.Clone(s.branches), checkpoints: maps.Clone(s.checkpoints),
		summaries: slices.Clone(s.summaries), reflog: slices.Clone(s.reflog),
		blocks: maps.Clone(s.blocks), erased: maps.Clone(s.erased), chunks: maps.Clone(s.chunks), values: maps.Clone(s.values), counts: s.counts,
	}
}

// take applies the effects of a commit, or of its records from first on. Deletions are
// applied first, because the effects have a subject only once that was deleted and created
// again.
func (s *rows) take(number uint64, e *judge.Effects, first int) {
	for id, c := range e.Threads.All() {
		put(s.threads, id, c.Now, c.Now != nil)
	}
	for id, c := range e.Contexts.All() {
		if c.Gone() {
			s.summaries = without(s.summaries, func(at judge.SummaryAt) bool { return at.Context == id })
			s.reflog = without(s.reflog, func(at reflogAt) bool { return at.context == id })
			maps.DeleteFunc(s.values, func(k structure.ValueKey, _ valueAt) bool { return k.Owner.Context == id })
		}
		if c.Stated == nil {
			delete(s.contexts, id)
		} else {
			s.contexts[id] = *c.Stated
		}
	}
	for id, r := range e.Remnants.All() {
		put(s.remnants, id, r.Now, r.Now != nil)
	}
	for id, at := range e.Tips.All() {
		c := s.contexts[id]
		c.Tip, c.Moved, c.MovedAt = at.Span, at.Commit, at.At
		s.contexts[id] = c
	}
	for home, at := range e.LastMessages.All() {
		if version, ok := s.messages[home]; !ok || version < at {
			s.messages[home] = at
		}
	}
	for id, run := range e.Runs.All() {
		s.runs[id] = run
	}
	for id, end := range e.Ends.All() {
		s.ends[id] = end
	}
	for ref, span := range e.Spans.All() {
		s.spans[ref] = span.Digest
	}
	for id, set := range e.Sets.All() {
		s.sets[id] = set
	}
	for l, ref := range e.Lookups.All() {
		s.lookups[l] = ref
	}
	for from, name := range e.BranchSources.All() {
		put(s.branchFrom, from, name, name != "")
	}
	for from, name := range e.CheckpointSources.All() {
		put(s.pointFrom, from, name, name != "")
	}
	for n, c := range e.Branches.All() {
		put(s.branches, n, c.Now, c.Now != nil)
	}
	for n, c := range e.Checkpoints.All() {
		put(s.checkpoints, n, c.Now, c.Now != nil)
	}
	s.takeNotes(number, e, first)
	for _, id := range e.ThreadsGone {
		maps.DeleteFunc(s.values, func(k structure.ValueKey, _ valueAt) bool { return k.Owner.Thread == id })
	}
	for k, v := range e.Values.All() {
		s.values[k] = valueAt{number, string(v.JSON)}
	}
	for id, b := range e.Blocks.All() {
		s.blocks[id] = b.Size
	}
	for k, c := range e.Chunks.All() {
		s.chunks[k] = c.Bytes
	}
	for id, erased := range e.Erased.All() {
		put(s.erased, id, true, erased)
	}
	s.count(e.Counts)
}

// without returns a list without some elements, or nil if none is left.
func without[T any](list []T, gone func(T) bool) []T {
	if list = slices.DeleteFunc(list, gone); len(list) == 0 {
		return nil
	}
	return list
}

func (s *rows) takeNotes(number uint64, e *judge.Effects, first int) {
	for at := range e.SummariesGone.All() {
		s.summaries = without(s.summaries, func(summary judge.SummaryAt) bool { return summary == at })
	}
	for _, n := range e.Summaries {
		if n.Is != nil {
			s.summaries = append(s.summaries, judge.SummaryAt{ID: n.Is.ID, Context: n.Is.Context, Commit: number, Record: uint64(first + n.Record)})
		}
	}
	for _, n := range e.Reflog {
		if n.Is != nil {
			s.reflog = append(s.reflog, reflogAt{n.Is.Context, number, first + n.Record})
		}
	}
}

func (s *rows) count(by judge.Counts) {
	c := &s.counts
	c.Threads += by.Threads
	c.Contexts += by.Contexts
	c.Branches += by.Branches
	c.Checkpoints += by.Checkpoints
	c.Runs += by.Runs
	c.Spans += by.Spans
	c.Usages += by.Usages
	c.Blocks += by.Blocks
	c.Chunks += by.Chunks
	c.UniqueBytes += by.UniqueBytes
	c.LogicalBytes += by.LogicalBytes
	c.Erased += by.Erased
}

// requireCounted compares the counters with the tables.
func (s *rows) requireCounted(t require.TestingT) {
	var unique int64
	for id, size := range s.blocks {
		if !s.erased[id] {
			unique += size
		}
	}
	counts := s.counts
	counts.Usages, counts.LogicalBytes = 0, 0 // the rows have no usages
	require.Equal(t, judge.Counts{
		Threads: int64(len(s.threads)), Contexts: int64(len(s.contexts)), Branches: int64(len(s.branches)),
		Checkpoints: int64(len(s.checkpoints)), Runs: int64(len(s.runs)), Spans: int64(len(s.spans)),
		Blocks: int64(len(s.blocks) - len(s.erased)), Chunks: int64(len(s.chunks)),
		UniqueBytes: unique, Erased: int64(len(s.erased)),
	}, counts)
}

// requireLines requires that the parents of all contexts and remnants are there, and that
// remnants have children and are no contexts.
func (s *rows) requireLines(t require.TestingT) {
	parents := make(map[structure.ContextID]bool)
	for _, c := range s.contexts {
		parents[c.Parent] = true
	}
	for id, r := range s.remnants {
		require.NotContains(t, s.contexts, id)
		parents[r.Parent] = true
	}
	for id := range s.remnants {
		require.True(t, parents[id], "nothing was forked from remnant %v", id)
	}
	for id := range parents {
		_, living := s.contexts[id]
		require.True(t, id.IsZero() || living || s.remnants[id] != nil, "parent %v is missing", id)
	}
}

// rows implements judge.View.

func (s *rows) Thread(id structure.ThreadID) (*structure.Thread, error) { return s.threads[id], nil }

func (s *rows) Context(id structure.ContextID) (*backend.Context, error) {
	c, ok := s.contexts[id]
	if !ok {
		return nil, nil
	}
	return &c, nil
}

func (s *rows) Remnant(id structure.ContextID) (*structure.Remnant, error) {
	return s.remnants[id], nil
}

func (s *rows) NextChild(parent, after structure.ContextID) (next structure.ContextID, ok bool, _ error) {
	consider := func(id, of structure.ContextID) {
		if of == parent && id.Compare(after) > 0 && (!ok || id.Compare(next) < 0) {
			next, ok = id, true
		}
	}
	for id, c := range s.contexts {
		consider(id, c.Parent)
	}
	for id, r := range s.remnants {
		consider(id, r.Parent)
	}
	return next, ok, nil
}

func (s *rows) Unused(structure.ContextID) bool { return false }

func (s *rows) Value(k structure.ValueKey) (uint64, error) { return s.values[k].commit, nil }

func (s *rows) Block(id content.ID) (int64, bool, error) {
	size, ok := s.blocks[id]
	return size, ok, nil
}

func (s *rows) Erased(id content.ID) (bool, error) { return s.erased[id], nil }

func (s *rows) HasChunk(k content.Key) (bool, error) { return s.chunks[k] != nil, nil }

func (s *rows) Chunks(_ context.Context, keys []content.Key) (bodies [][]byte, err error) {
	for _, k := range keys {
		bodies = append(bodies, s.chunks[k])
	}
	return bodies, nil
}

func (s *rows) Run(id structure.RunID) (structure.RunInfo, bool, error) {
	run, ok := s.runs[id]
	return run, ok, nil
}

func (s *rows) End(id structure.RunID) (judge.End, bool, error) {
	end, ok := s.ends[id]
	return end, ok, nil
}

func (s *rows) HasSpan(r structure.SpanRef) (bool, error) {
	_, ok := s.spans[r]
	return ok, nil
}

func (s *rows) Digest(r structure.SpanRef) (structure.Digest, error) { return s.spans[r], nil }

func (s *rows) HasSet(id structure.SpanSetID) (bool, error) { return s.sets[id] != nil, nil }

func (s *rows) HasLookup(l judge.Lookup) (bool, error) {
	_, ok := s.lookups[l]
	return ok, nil
}

func (s *rows) Find(sourceID string, thread structure.ThreadID) iter.Seq2[backend.Found, error] {
	return func(yield func(backend.Found, error) bool) {
		for l, ref := range s.lookups {
			is := s.threads[l.Home.Thread]
			if l.SourceID != sourceID || !thread.IsZero() && l.Home.Thread != thread || is == nil || is.Home() != l.Home {
				continue
			}
			if !yield(backend.Found{Home: l.Home, Lookup: l.Number, Span: ref}, nil) {
				return
			}
		}
	}
}

func (s *rows) BranchFrom(from judge.SourceID) (string, error) { return s.branchFrom[from], nil }

func (s *rows) CheckpointFrom(from judge.SourceID) (string, error) { return s.pointFrom[from], nil }

func (s *rows) Branch(n judge.Name) (*structure.Branch, error) { return s.branches[n], nil }

func (s *rows) Checkpoint(n judge.Name) (*structure.Checkpoint, error) { return s.checkpoints[n], nil }

func (s *rows) Members(id structure.ThreadID) (all []*backend.Context, _ error) {
	for _, c := range s.contexts {
		if c.Thread == id {
			all = append(all, &c)
		}
	}
	return all, nil
}

func (s *rows) Branches(id structure.ThreadID) (all []*structure.Branch, _ error) {
	for n, b := range s.branches {
		if n.Thread == id {
			all = append(all, b)
		}
	}
	return all, nil
}

func (s *rows) Checkpoints(id structure.ThreadID) (all []*structure.Checkpoint, _ error) {
	for n, c := range s.checkpoints {
		if n.Thread == id {
			all = append(all, c)
		}
	}
	return all, nil
}

func (s *rows) NamesOf(thread structure.ThreadID, id structure.ContextID) (all []string, _ error) {
	for n, b := range s.branches {
		if n.Thread == thread && b.Context == id {
			all = append(all, n.Name)
		}
	}
	return all, nil
}

func (s *rows) Summaries(id structure.ContextID) (all []judge.SummaryAt, _ error) {
	for _, at := range s.summaries {
		if at.Context == id {
			all = append(all, at)
		}
	}
	return all, nil
}

func (s *rows) HasBlock(id content.ID) (bool, error) {
	_, ok := s.blocks[id]
	return ok && !s.erased[id], nil
}

var (
	_ judge.View   = (*rows)(nil)
	_ judge.Stored = (*rows)(nil)
)
