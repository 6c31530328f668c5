package export

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// tree has the forks of a conversation's histories. It consists of runs, not spans, so its size depends on the number
// of forks.
type tree struct {
	store *lineage.Store
	runs  map[structure.RunID]*branchedRun
	roots []structure.RunID
	// names maps a span to the branches whose tip it is.
	names map[lineage.SpanRef][]string
	// path maps each run of the active history to the step at which the history leaves it.
	path map[structure.RunID]descent
}

type branchedRun struct {
	info  structure.RunInfo
	last  uint64                       // last place of the run that is in a history
	forks map[uint64][]structure.RunID // runs by the place after which they fork
	ends  []end
}

// end is a branch whose history ends in a run, or continues in another run, after a place.
type end struct {
	leaves uint64
	branch string
}

type descent struct {
	leaves uint64
	next   structure.RunID
}

// maxEnds limits the branches that a run remembers for its label.
const maxEnds = 64

func newTree(ctx context.Context, store *lineage.Store, tips []tip) (*tree, error) {
	t := &tree{
		store: store, runs: make(map[structure.RunID]*branchedRun),
		names: make(map[lineage.SpanRef][]string), path: make(map[structure.RunID]descent),
	}
	runs := backend.Runs(ctx, store.View())
	lookup := func(id structure.RunID) (structure.RunInfo, error) {
		if r, ok := t.runs[id]; ok {
			return r.info, nil
		}
		return runs(id)
	}
	for _, tip := range tips {
		segments, err := structure.Segments(tip.ref, structure.Window{}, lookup)
		if err != nil {
			return nil, err
		}
		t.add(segments, tip)
	}
	return t, nil
}

func (t *tree) add(segments []structure.Segment, tip tip) {
	for i, s := range segments {
		r := t.runs[s.Run.ID]
		if r == nil {
			r = &branchedRun{info: s.Run, forks: make(map[uint64][]structure.RunID)}
			t.runs[s.Run.ID] = r
			if i == 0 {
				t.roots = append(t.roots, s.Run.ID)
			} else {
				parent := t.runs[s.Run.Parent.Run]
				parent.forks[s.Run.Parent.Seq] = append(parent.forks[s.Run.Parent.Seq], s.Run.ID)
			}
		}
		r.last = max(r.last, s.Last)
		if tip.branch != "" && len(r.ends) < maxEnds {
			r.ends = append(r.ends, end{s.Last, tip.branch})
		}
		if tip.active {
			on := descent{leaves: s.Last}
			if i+1 < len(segments) {
				on.next = segments[i+1].Run.ID
			}
			t.path[s.Run.ID] = on
		}
	}
	if tip.branch != "" {
		t.names[tip.ref] = append(t.names[tip.ref], tip.branch)
	}
}

// leaf reports whether no history continues after a span.
func (t *tree) leaf(ref lineage.SpanRef) bool {
	r := t.runs[ref.Run]
	return r != nil && ref.Seq == r.last && len(r.forks[ref.Seq]) == 0
}

// line is a sequence of spans without forks to follow, from a first span to an end of a history.
type line struct {
	first lineage.SpanRef
	// after is the position after which the line forks from another one, 0 at the start.
	after uint64
	// branches are the branches that end on the line or on lines that fork from it.
	branches []string
}

// lines returns the lines that begin histories, the active one first.
func (t *tree) lines() []line {
	return t.continuations(lineage.SpanRef{})
}

// continuations returns the lines that follow a span. The first is that of the active history, or else that of the
// same run.
func (t *tree) continuations(ref lineage.SpanRef) []line {
	var next []lineage.SpanRef
	forks := t.roots
	if !ref.IsZero() {
		r := t.runs[ref.Run]
		forks = r.forks[ref.Seq]
		if ref.Seq < r.last {
			next = append(next, lineage.SpanRef{Run: ref.Run, Seq: ref.Seq + 1})
		}
	}
	for _, id := range forks {
		next = append(next, lineage.SpanRef{Run: id, Seq: 1})
	}
	lines := make([]line, 0, len(next))
	for _, first := range next {
		l := line{first: first, branches: t.branchesFrom(first), after: t.position(ref)}
		if on, ok := t.path[first.Run]; ok && first.Seq <= on.leaves {
			lines = append([]line{l}, lines...)
		} else {
			lines = append(lines, l)
		}
	}
	return lines
}

func (t *tree) position(ref lineage.SpanRef) uint64 {
	if ref.IsZero() {
		return 0
	}
	return t.runs[ref.Run].info.Position(ref.Seq)
}

func (t *tree) branchesFrom(first lineage.SpanRef) []string {
	var names []string
	for _, e := range t.runs[first.Run].ends {
		if e.leaves >= first.Seq {
			names = append(names, e.branch)
		}
	}
	return names
}

// lineStep is a span of a line, with the branches that end at it and the lines that fork after it.
type lineStep struct {
	entries []*lineage.Entry
	// names are the branches whose tip is this span.
	names []string
	off   []line
}

// walk yields the places of a line.
func (t *tree) walk(ctx context.Context, l line) iter.Seq2[*lineStep, error] {
	return func(yield func(*lineStep, error) bool) {
		for first := l.first; !first.IsZero(); {
			r := t.runs[first.Run]
			last := lineage.SpanRef{Run: first.Run, Seq: r.last}
			if on, ok := t.path[first.Run]; ok && first.Seq <= on.leaves {
				last.Seq = on.leaves
			}
			window := structure.Window{From: r.info.Position(first.Seq)}
			for p, err := range lineSteps(t.store.History(ctx, last, window)) {
				if err != nil {
					yield(nil, err)
					return
				}
				at := p.entries[0].Span
				p.names = t.names[at]
				next := t.continuations(at)
				if len(next) > 0 {
					p.off = next[1:]
				}
				if !yield(p, nil) {
					return
				}
			}
			first = lineage.SpanRef{}
			if next := t.continuations(last); len(next) > 0 {
				first = next[0].first
			}
		}
	}
}

// lineSteps groups entries by span.
func lineSteps(entries iter.Seq2[*lineage.Entry, error]) iter.Seq2[*lineStep, error] {
	return func(yield func(*lineStep, error) bool) {
		var p *lineStep
		for e, err := range entries {
			if err != nil {
				yield(nil, err)
				return
			}
			if p != nil && p.entries[0].Span == e.Span {
				p.entries = append(p.entries, e)
				continue
			}
			if p != nil && !yield(p, nil) {
				return
			}
			p = &lineStep{entries: []*lineage.Entry{e}}
		}
		if p != nil {
			yield(p, nil)
		}
	}
}
