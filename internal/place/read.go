package place

import (
	"errors"
	"slices"
	"strconv"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// run is the cached state of a run of the store.
type run struct {
	own  bool // belongs to the thread
	last uint64
	// spans are the part of the run that was read ahead, beginning at position from. size is the number of spans
	// requested.
	from  uint64
	spans []*structure.Span
	size  uint64
}

// Sequential reads of a run read increasingly large parts, up to a limit.
const (
	maxAhead = 64
	maxRead  = 4096 // spans in Placer.runs, and in Placer.forks
)

// run returns the cached state of a run.
func (p *Placer) run(id structure.RunID) (*run, error) {
	if r := p.runs[id]; r != nil {
		return r, nil
	}
	if last, known := p.rules.Ends[id]; known {
		r := &run{own: true, last: last, size: 1}
		p.keep(id, r)
		return r, nil
	}
	info, err := p.from.Run(p.ctx, id)
	if err != nil {
		return nil, err
	}
	last, err := p.from.Last(p.ctx, id)
	if err != nil {
		return nil, err
	}
	r := &run{own: info.Home == p.thread.Home(), last: last.Seq, size: 1}
	p.keep(id, r)
	return r, nil
}

func (p *Placer) keep(id structure.RunID, r *run) {
	if p.read++; p.read > maxRead || p.runs == nil {
		p.runs, p.read = make(map[structure.RunID]*run), 1
	}
	p.runs[id] = r
}

// span returns a span.
func (p *Placer) span(at structure.SpanRef) (*structure.Span, error) {
	for step, err := range p.from.Path(p.ctx, at, structure.Window{Last: 1}, backend.PathOptions{}) {
		if err != nil {
			return nil, err
		}
		return step.Span, nil
	}
	return nil, &backend.SubjectError{Subject: "span", ID: at.String(), Err: backend.ErrNotFound}
}

// spanAfter returns a span that follows another one. A source with the current state requests most spans of a run in
// order.
func (p *Placer) spanAfter(above, at structure.SpanRef) (*structure.Span, error) {
	if p.rules.Latest {
		if next, err := p.next(above); err != nil || next != nil && next.Ref == at {
			return next, err
		}
	}
	return p.span(at)
}

// next returns the span after another one in its run, or nil if there is none that may be compared.
func (p *Placer) next(after structure.SpanRef) (*structure.Span, error) {
	if after.IsZero() || p.isNew(after.Run) {
		return nil, nil
	}
	r, err := p.run(after.Run)
	if err != nil {
		return nil, err
	}
	seq := after.Seq + 1
	if seq > r.last || !r.own && !p.rules.Base.Has(structure.SpanRef{Run: after.Run, Seq: seq}) {
		return nil, nil
	}
	if end := r.from + uint64(len(r.spans)); seq < r.from || seq >= end {
		if r.size = min(4*r.size, maxAhead); seq != end {
			r.size = 1
		}
		n := min(r.size, r.last-after.Seq)
		p.read += int(n) - len(r.spans)
		r.from, r.spans = seq, r.spans[:0]
		for step, err := range p.from.Path(p.ctx, structure.SpanRef{Run: after.Run, Seq: after.Seq + n}, structure.Window{Last: n}, backend.PathOptions{}) {
			if err != nil {
				return nil, err
			}
			r.spans = append(r.spans, step.Span)
		}
	}
	return r.spans[seq-r.from], nil
}

// isNew reports whether the batch begins a run.
func (p *Placer) isNew(run structure.RunID) bool {
	_, begun := p.begun[run]
	return begun
}

// maxListed limits the runs of a thread that are listed together.
const maxListed = 64

// beginsAfter reports whether a run of the thread may begin after a span. One list of the few runs of a thread answers
// that for all spans.
func (p *Placer) beginsAfter(after structure.SpanRef) (bool, error) {
	if !p.rules.Own || p.rules.Base != nil {
		return true, nil
	}
	if p.followed == nil {
		p.followed = make(map[structure.SpanRef]bool)
		for next, err := range p.from.RunsOf(p.ctx, p.thread.ID, structure.RunID{}) {
			if err != nil {
				return false, err
			}
			if p.followed[next.Parent] = true; len(p.followed) > maxListed {
				break
			}
		}
	}
	return len(p.followed) > maxListed || p.followed[after], nil
}

// fork looks for the message at the beginning of runs.
func (p *Placer) fork(s *search) (structure.SpanRef, error) {
	if may, err := p.beginsAfter(s.after); !may || err != nil {
		return structure.SpanRef{}, err
	}
	if s.after.IsZero() {
		roots, err := p.baseRoots()
		if err != nil {
			return structure.SpanRef{}, err
		}
		for _, span := range roots {
			if e, err := p.compare(s, span); e == equal || err != nil {
				return span.Ref, err
			}
		}
	}
	if !p.isNew(s.after.Run) {
		for n := uint64(0); ; n++ {
			first := structure.SpanRef{Run: p.derived(s.after, n), Seq: 1}
			if taken, err := p.taken(first.Run); !taken {
				if err != nil {
					return structure.SpanRef{}, err
				}
				break
			}
			r, err := p.run(first.Run)
			if err != nil {
				return structure.SpanRef{}, err
			}
			if r.last == 0 {
				continue
			}
			span, err := p.span(first)
			if err != nil {
				return structure.SpanRef{}, err
			}
			if e, err := p.compare(s, span); e == equal || err != nil {
				return first, err
			}
		}
	}
	forks, err := p.forksAt(s.after)
	if err != nil {
		return structure.SpanRef{}, err
	}
	for _, span := range forks {
		if e, err := p.compare(s, span); e == equal || err != nil {
			return span.Ref, err
		}
	}
	return structure.SpanRef{}, nil
}

// baseFollows reports whether spans of Base may follow a span.
func (p *Placer) baseFollows(after structure.SpanRef) bool {
	if len(p.rules.Base) == 0 || p.rules.Base.Has(after) {
		return len(p.rules.Base) > 0
	}
	if p.parents == nil {
		p.parents = make(map[structure.SpanRef]bool)
		for _, e := range p.rules.Base {
			p.parents[e.Run.Parent] = true
		}
	}
	return p.parents[after]
}

// baseRoots returns the first spans of the histories in Base.
func (p *Placer) baseRoots() ([]*structure.Span, error) {
	if p.roots != nil || len(p.rules.Base) == 0 {
		return p.roots, nil
	}
	roots := []*structure.Span{}
	for id, e := range p.rules.Base {
		if !e.Run.Parent.IsZero() {
			continue
		}
		s, err := p.span(structure.SpanRef{Run: id, Seq: 1})
		if err != nil {
			return nil, err
		}
		roots = append(roots, s)
	}
	slices.SortFunc(roots, func(a, b *structure.Span) int { return a.Ref.Run.Compare(b.Ref.Run) })
	p.roots = roots
	return roots, nil
}

// derived returns the n-th derived id for a run that begins with the message. The next n is tried if a run has the id
// but not the message, because that was collected.
func (p *Placer) derived(after structure.SpanRef, n uint64) structure.RunID {
	home := p.thread.Home()
	return structure.DeriveID[structure.RunID]("place", string(home.Thread[:]), strconv.FormatUint(home.Incarnation, 16), string(after.Run[:]),
		strconv.FormatUint(after.Seq, 16), string(p.message), strconv.FormatUint(n, 16))
}

func (p *Placer) taken(run structure.RunID) (bool, error) {
	_, err := p.from.Run(p.ctx, run)
	if errors.Is(err, backend.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// forksAt returns the first spans of the runs that begin after a span, if they may be compared.
func (p *Placer) forksAt(after structure.SpanRef) ([]*structure.Span, error) {
	if p.isNew(after.Run) {
		return nil, nil
	}
	if forks, known := p.forks[after]; known {
		return forks, nil
	}
	var forks []*structure.Span
	add := func(id structure.RunID) error {
		r, err := p.run(id)
		if err != nil || r.last == 0 {
			return err
		}
		first := structure.SpanRef{Run: id, Seq: 1}
		if !r.own && !p.rules.Base.Has(first) {
			return nil
		}
		s, err := p.span(first)
		forks = append(forks, s)
		return err
	}
	list := p.from.ForksAt(p.ctx, after)
	if after.IsZero() {
		list = p.from.RunsOf(p.ctx, p.thread.ID, structure.RunID{})
	}
	for next, err := range list {
		if err != nil {
			return nil, err
		}
		if next.Parent != after || after.IsZero() && p.rules.Base[next.ID] != nil {
			continue // it begins elsewhere, or was compared
		}
		if err := add(next.ID); err != nil {
			return nil, err
		}
	}
	if p.cached += 1 + len(forks); p.cached > maxRead || p.forks == nil {
		p.forks, p.cached = make(map[structure.SpanRef][]*structure.Span), 1+len(forks)
	}
	p.forks[after] = forks
	return forks, nil
}
