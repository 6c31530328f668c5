package place

import (
	"context"
	"errors"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// runState is the cached state of a run of the store.
type runState struct {
	own  bool // belongs to the thread
	last uint64
	// spans are the part of the run that was read ahead, beginning at position from. size is the number of spans
	// requested.
	from  uint64
	spans []*structure.Span
	size  uint64
}

// history reads what follows a span in the store: the next span of its run, and the first spans of the runs that begin
// there. It knows nothing of messages, and remembers what it has read. Of other threads it reads only spans of base.
type history struct {
	ctx    context.Context
	from   backend.Reader
	thread *structure.Thread
	base   backend.Reach // Rules.Base
	// knownEnds are Rules.Ends. ownThread is set if the caller added everything in the thread, and no base is searched.
	knownEnds map[structure.RunID]uint64
	ownThread bool

	runs  map[structure.RunID]*runState
	read  int               // runs, and spans of them
	roots []*structure.Span // the first spans of base; nil until they are read
	// parents are the spans after which runs of base begin; nil until needed.
	parents map[structure.SpanRef]bool
	forks   map[structure.SpanRef][]*structure.Span // the first spans of the runs after a span
	cached  int                                     // number of spans in forks
	// followed are the spans after which runs of the thread begin, more than maxListed if it has many; nil until needed.
	followed map[structure.SpanRef]bool
}

// Sequential reads of a run read increasingly large parts, up to a limit.
const (
	maxAhead = 64
	maxRead  = 4096 // spans in history.runs, and in history.forks
)

// run returns the cached state of a run.
func (h *history) run(id structure.RunID) (*runState, error) {
	if r := h.runs[id]; r != nil {
		return r, nil
	}
	if last, known := h.knownEnds[id]; known {
		r := &runState{own: true, last: last, size: 1}
		h.keep(id, r)
		return r, nil
	}
	info, err := h.from.Run(h.ctx, id)
	if err != nil {
		return nil, err
	}
	last, err := h.from.Last(h.ctx, id)
	if err != nil {
		return nil, err
	}
	r := &runState{own: info.Home == h.thread.Home(), last: last.Seq, size: 1}
	h.keep(id, r)
	return r, nil
}

func (h *history) keep(id structure.RunID, r *runState) {
	if h.read++; h.read > maxRead || h.runs == nil {
		h.runs, h.read = make(map[structure.RunID]*runState), 1
	}
	h.runs[id] = r
}

// span returns a span.
func (h *history) span(at structure.SpanRef) (*structure.Span, error) {
	for step, err := range h.from.Path(h.ctx, at, structure.Window{Last: 1}, backend.PathOptions{}) {
		if err != nil {
			return nil, err
		}
		return step.Span, nil
	}
	return nil, &backend.SubjectError{Subject: "span", ID: at.String(), Err: backend.ErrNotFound}
}

// next returns the span after another one in its run, or nil if there is none that may be compared.
func (h *history) next(after structure.SpanRef) (*structure.Span, error) {
	if after.IsZero() {
		return nil, nil
	}
	r, err := h.run(after.Run)
	if err != nil {
		return nil, err
	}
	seq := after.Seq + 1
	if seq > r.last || !r.own && !h.base.Has(structure.SpanRef{Run: after.Run, Seq: seq}) {
		return nil, nil
	}
	if end := r.from + uint64(len(r.spans)); seq < r.from || seq >= end {
		if r.size = min(4*r.size, maxAhead); seq != end {
			r.size = 1
		}
		n := min(r.size, r.last-after.Seq)
		h.read += int(n) - len(r.spans)
		r.from, r.spans = seq, r.spans[:0]
		for step, err := range h.from.Path(h.ctx, structure.SpanRef{Run: after.Run, Seq: after.Seq + n}, structure.Window{Last: n}, backend.PathOptions{}) {
			if err != nil {
				return nil, err
			}
			r.spans = append(r.spans, step.Span)
		}
	}
	return r.spans[seq-r.from], nil
}

// maxListed limits the runs of a thread that are listed together.
const maxListed = 64

// beginsAfter reports whether a run of the thread may begin after a span. One list of the few runs of a thread answers
// that for all spans.
func (h *history) beginsAfter(after structure.SpanRef) (bool, error) {
	if !h.ownThread {
		return true, nil
	}
	if h.followed == nil {
		h.followed = make(map[structure.SpanRef]bool)
		for next, err := range h.from.RunsOf(h.ctx, h.thread.ID, structure.RunID{}) {
			if err != nil {
				return false, err
			}
			if h.followed[next.Parent] = true; len(h.followed) > maxListed {
				break
			}
		}
	}
	return len(h.followed) > maxListed || h.followed[after], nil
}

// baseFollows reports whether spans of Base may follow a span.
func (h *history) baseFollows(after structure.SpanRef) bool {
	if len(h.base) == 0 || h.base.Has(after) {
		return len(h.base) > 0
	}
	if h.parents == nil {
		h.parents = make(map[structure.SpanRef]bool)
		for _, e := range h.base {
			h.parents[e.Run.Parent] = true
		}
	}
	return h.parents[after]
}

// baseRoots returns the first spans of the histories in Base.
func (h *history) baseRoots() ([]*structure.Span, error) {
	if h.roots != nil || len(h.base) == 0 {
		return h.roots, nil
	}
	roots := []*structure.Span{}
	for id, e := range h.base {
		if !e.Run.Parent.IsZero() {
			continue
		}
		s, err := h.span(structure.SpanRef{Run: id, Seq: 1})
		if err != nil {
			return nil, err
		}
		roots = append(roots, s)
	}
	slices.SortFunc(roots, func(a, b *structure.Span) int { return a.Ref.Run.Compare(b.Ref.Run) })
	h.roots = roots
	return roots, nil
}

// forksAt returns the first spans of the runs that begin after a span, if they may be compared.
func (h *history) forksAt(after structure.SpanRef) ([]*structure.Span, error) {
	if forks, known := h.forks[after]; known {
		return forks, nil
	}
	var forks []*structure.Span
	add := func(id structure.RunID) error {
		r, err := h.run(id)
		if err != nil || r.last == 0 {
			return err
		}
		first := structure.SpanRef{Run: id, Seq: 1}
		if !r.own && !h.base.Has(first) {
			return nil
		}
		s, err := h.span(first)
		forks = append(forks, s)
		return err
	}
	list := h.from.ForksAt(h.ctx, after)
	if after.IsZero() {
		list = h.from.RunsOf(h.ctx, h.thread.ID, structure.RunID{})
	}
	for next, err := range list {
		if err != nil {
			return nil, err
		}
		if next.Parent != after || after.IsZero() && h.base[next.ID] != nil {
			continue // it begins elsewhere, or was compared
		}
		if err := add(next.ID); err != nil {
			return nil, err
		}
	}
	if h.cached += 1 + len(forks); h.cached > maxRead || h.forks == nil {
		h.forks, h.cached = make(map[structure.SpanRef][]*structure.Span), 1+len(forks)
	}
	h.forks[after] = forks
	return forks, nil
}

func (h *history) taken(run structure.RunID) (bool, error) {
	_, err := h.from.Run(h.ctx, run)
	if errors.Is(err, backend.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
