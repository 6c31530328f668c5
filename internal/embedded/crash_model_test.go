package embedded

import (
	"bytes"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// named is a branch or checkpoint of a thread.
type named struct {
	thread structure.ThreadID
	name   string
}

// placed is a span and the commit that brought it.
type placed struct {
	span   *structure.Span
	commit uint64
}

// state is what a store holds after some commits, kept in the plainest way. It
// takes commits as they are: that they are valid is their author's business.
type state struct {
	number      uint64
	threads     map[structure.ThreadID]*structure.Thread
	contexts    map[structure.ContextID]*backend.Context
	branches    map[named]*structure.Branch
	checkpoints map[named]*structure.Checkpoint
	runs        map[structure.RunID]*structure.Run
	ends        map[structure.RunID]uint64
	closed      map[structure.RunID]bool // lost their ends to a collection
	spans       map[structure.SpanRef]placed
	order       []structure.SpanRef // as they came
	sets        map[structure.SpanSetID]*structure.SpanSet
	lookups     map[judge.Lookup]structure.SpanRef
	blocks      map[content.ID]*structure.Block
	erased      map[content.ID]bool
	chunks      map[content.Key]*structure.Chunk
	summaries   []*structure.Summary
	reflog      []*structure.Reflog
	values      map[structure.ValueKey][]backend.Value // oldest first
	logical     uint64
	digests     map[structure.SpanRef]structure.Digest // of those asked for
}

// stateAfter returns the state after commits.
func stateAfter(commits []*structure.Commit) *state {
	s := &state{
		threads:     map[structure.ThreadID]*structure.Thread{},
		contexts:    map[structure.ContextID]*backend.Context{},
		branches:    map[named]*structure.Branch{},
		checkpoints: map[named]*structure.Checkpoint{},
		runs:        map[structure.RunID]*structure.Run{},
		ends:        map[structure.RunID]uint64{},
		closed:      map[structure.RunID]bool{},
		spans:       map[structure.SpanRef]placed{},
		sets:        map[structure.SpanSetID]*structure.SpanSet{},
		lookups:     map[judge.Lookup]structure.SpanRef{},
		blocks:      map[content.ID]*structure.Block{},
		erased:      map[content.ID]bool{},
		chunks:      map[content.Key]*structure.Chunk{},
		values:      map[structure.ValueKey][]backend.Value{},
		digests:     map[structure.SpanRef]structure.Digest{},
	}
	for _, c := range commits {
		s.add(c)
	}
	return s
}

func (s *state) add(c *structure.Commit) {
	s.number++
	for _, r := range c.Records {
		s.record(c, r)
	}
}

func (s *state) record(c *structure.Commit, r structure.Record) {
	switch r := r.(type) {
	case *structure.Block:
		s.blocks[r.ID] = r
		delete(s.erased, r.ID)
	case *structure.Chunk:
		s.chunks[r.Key] = r
	case *structure.Thread:
		s.threads[r.ID] = r
	case *structure.Context:
		s.contexts[r.ID] = &backend.Context{Context: *r, Moved: s.number, MovedAt: c.Time.UnixMilli()}
	case *structure.Tip:
		moved := *s.contexts[r.Context]
		moved.Tip, moved.Moved, moved.MovedAt = r.Span, s.number, c.Time.UnixMilli()
		s.contexts[r.Context] = &moved
	case *structure.Run:
		s.runs[r.ID] = r
	case *structure.Span:
		s.span(r)
	case *structure.SpanSet:
		s.sets[r.ID] = r
	case *structure.Branch:
		s.branches[named{r.Thread, r.Name}] = r
	case *structure.Checkpoint:
		s.checkpoints[named{r.Thread, r.Name}] = r
	case *structure.Summary:
		s.summaries = append(s.summaries, r)
	case *structure.Reflog:
		s.reflog = append(s.reflog, r)
	case *structure.Deletion:
		s.deletion(r)
	case *structure.Value:
		s.value(r)
	}
}

func (s *state) span(r *structure.Span) {
	s.ends[r.Ref.Run] = r.Ref.Seq
	s.spans[r.Ref] = placed{span: r, commit: s.number}
	s.order = append(s.order, r.Ref)
	for _, u := range r.Usages {
		s.logical += uint64(s.blocks[u.Content].Size)
		s.lookup(&u, r.Ref)
	}
}

// lookup notes what a usage is found by.
func (s *state) lookup(u *structure.Usage, at structure.SpanRef) {
	if run := s.runs[at.Run]; u.Lookup != 0 && run != nil && !run.Home.Thread.IsZero() {
		s.lookups[judge.Lookup{Home: run.Home, SourceID: u.SourceID, Number: u.Lookup}] = at
	}
}

// exists reports whether a home does.
func (s *state) exists(h structure.Home) bool {
	t := s.threads[h.Thread]
	return t != nil && t.Home() == h
}

func (s *state) deletion(d *structure.Deletion) {
	switch d.Subject {
	case structure.KindThread:
		delete(s.threads, d.Thread)
		s.dropValues(structure.Owner{Scope: structure.ThreadScope, Thread: d.Thread})
		maps.DeleteFunc(s.branches, func(n named, _ *structure.Branch) bool { return n.thread == d.Thread })
		maps.DeleteFunc(s.checkpoints, func(n named, _ *structure.Checkpoint) bool { return n.thread == d.Thread })
		for id, c := range s.contexts {
			if c.Thread == d.Thread {
				s.dropContext(id)
			}
		}
	case structure.KindContext:
		s.dropContext(d.Context)
	case structure.KindBranch:
		delete(s.branches, named{d.Thread, d.Name})
	case structure.KindCheckpoint:
		delete(s.checkpoints, named{d.Thread, d.Name})
	case structure.KindSummary:
		s.summaries = slices.DeleteFunc(s.summaries, func(r *structure.Summary) bool { return r.ID == d.Summary })
	case structure.KindBlock:
		s.erased[d.Content] = true
	}
}

func (s *state) dropContext(id structure.ContextID) {
	delete(s.contexts, id)
	s.dropValues(structure.Owner{Scope: structure.ContextScope, Context: id})
	s.summaries = slices.DeleteFunc(s.summaries, func(r *structure.Summary) bool { return r.Context == id })
	s.reflog = slices.DeleteFunc(s.reflog, func(r *structure.Reflog) bool { return r.Context == id })
}

func (s *state) has(id content.ID) bool { return s.blocks[id] != nil && !s.erased[id] }

// history lists the spans up to a tip, oldest first, found one parent at a time.
func (s *state) history(tip structure.SpanRef) (out []placed) {
	for ; !tip.IsZero(); tip = s.parent(tip) {
		out = append(out, s.spans[tip])
	}
	slices.Reverse(out)
	return out
}

// parent returns the span before another, the empty position before the first.
func (s *state) parent(r structure.SpanRef) structure.SpanRef {
	if r.Seq--; r.Seq == 0 {
		return s.runs[r.Run].Parent
	}
	return r
}

func (s *state) digest(tip structure.SpanRef) structure.Digest {
	if tip.IsZero() {
		return structure.Digest{}
	}
	d, ok := s.digests[tip]
	if !ok {
		d = structure.NextDigest(s.digest(s.parent(tip)), s.spans[tip].span.Usages)
		s.digests[tip] = d
	}
	return d
}

func (s *state) info(r *structure.Run) structure.RunInfo {
	return structure.RunInfo{Run: *r, Depth: uint64(len(s.history(r.Parent))), Digest: s.digest(r.Parent)}
}

// forks lists the runs that start in a run, by the place they start after.
func (s *state) forks(id structure.RunID) []structure.RunInfo {
	out := []structure.RunInfo{}
	for _, r := range s.runs {
		if r.Parent.Run == id {
			out = append(out, s.info(r))
		}
	}
	slices.SortFunc(out, func(a, b structure.RunInfo) int {
		if a.Parent.Seq != b.Parent.Seq {
			return int(a.Parent.Seq) - int(b.Parent.Seq)
		}
		return bytes.Compare(a.ID[:], b.ID[:])
	})
	return out
}

func (s *state) stats() backend.Stats {
	out := backend.Stats{
		Threads: uint64(len(s.threads)), Contexts: uint64(len(s.contexts)), Branches: uint64(len(s.branches)),
		Checkpoints: uint64(len(s.checkpoints)), Runs: uint64(len(s.runs)), Spans: uint64(len(s.spans)),
		Chunks: uint64(len(s.chunks)), LogicalBytes: s.logical,
	}
	for _, p := range s.spans {
		out.Usages += uint64(structure.Entries(p.span.Usages))
	}
	for id, b := range s.blocks {
		if !s.erased[id] {
			out.Blocks++
			out.UniqueBytes += uint64(b.Size)
		}
	}
	return out
}
