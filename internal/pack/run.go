package pack

import (
	"sort"

	"github.com/lineage-store/lineage/internal/pack/lookup"
	"github.com/lineage-store/lineage/structure"
)

// RunSpans are consecutive spans of a run, and the commits that contain them.
type RunSpans struct {
	First, Last uint64
	stretches   []lookup.Stretch
}

// Commit returns the commit of the span at a place between First and Last.
func (s *RunSpans) Commit(place uint64) uint64 {
	i := sort.Search(len(s.stretches), func(i int) bool { return s.stretches[i].First > place }) - 1
	in := &s.stretches[max(i, 0)]
	return in.Commit + (place-in.First)/in.Spans
}

// Before returns the spans from before a commit, or nil for none.
func (s *RunSpans) Before(commit uint64) *RunSpans {
	i := sort.Search(len(s.stretches), func(i int) bool { return s.stretches[i].Commit >= commit }) - 1
	if i < 0 {
		return nil
	}
	in := &s.stretches[i]
	return &RunSpans{s.First, in.First + min(in.Commits, commit-in.Commit)*in.Spans - 1, s.stretches}
}

// UpTo returns the spans up to a place.
func (s *RunSpans) UpTo(last uint64) *RunSpans { return &RunSpans{s.First, last, s.stretches} }

// Run returns the spans of a run in the pack, usually as one element; the latest
// come last. If near is close to the wanted places, less is read.
func (p *File) Run(id structure.RunID, near uint64) ([]*RunSpans, error) {
	d, err := p.directory()
	if err != nil {
		return nil, err
	}
	numbers, err := p.candidates(&d.Runs, lookup.RunFingerprint(id))
	if err != nil {
		return nil, p.lookupFault(err)
	}
	var out []*RunSpans
	for _, n := range numbers {
		s, err := p.run(d, n, id, near)
		if err != nil {
			return nil, err
		}
		if s != nil {
			out = append(out, &s.RunSpans)
		}
	}
	return out, nil
}

// listedRun is a run found for an id.
type listedRun struct {
	RunSpans
	id structure.RunID
}

// run returns the run with a number if it has the id. Runs that share a fingerprint
// are listed in the directory with their ids; any other run is the right one if one
// of its spans is in the listed commit.
func (p *File) run(d *lookup.Directory, number uint32, id structure.RunID, near uint64) (*listedRun, error) {
	k := cacheKey{&p.mendedFile, cachedRun, uint64(number)}
	if s, ok := p.cache.get(k).(*listedRun); ok && s.id == id {
		return s, nil
	}
	own, shared := d.IDOf(number)
	if shared && own != id {
		return nil, nil
	}
	list, index := d.ListOf(number)
	at := d.List(list)
	b, err := p.part(at)
	if err != nil {
		return nil, p.lookupFault(err)
	}
	runs, err := d.ReadList(b, list, p.Header)
	if err != nil {
		return nil, p.lookupFault(p.corrupt(at.Offset, err.Error()))
	}
	s := &listedRun{id: id}
	s.stretches = runs[index]
	s.First, s.Last = s.stretches[0].First, s.stretches[len(s.stretches)-1].Last()
	if !shared {
		near = min(max(near, s.First), s.Last)
		has, err := p.hasSpan(s.Commit(near), structure.SpanRef{Run: id, Seq: near}, s.stretches[0])
		if err != nil || !has {
			return nil, err
		}
	}
	p.cache.put(k, s, int64(len(s.stretches))*40+128)
	p.cache.put(cacheKey{&p.mendedFile, cachedBegin, uint64(lookup.RunFingerprint(id))}, s, 64)
	return s, nil
}

// hasSpan reports whether a commit has a span. start is the first stretch of the
// run.
func (p *File) hasSpan(number uint64, ref structure.SpanRef, start lookup.Stretch) (bool, error) {
	continuations, n, err := p.continuationsOf(number)
	if err != nil {
		return false, err
	}
	var at commitPiece
	if guess := guessPiece(continuations, number, ref, start); guess > 0 {
		if at, err = p.continuationIn(n + guess); err != nil || at.x.Has(ref) {
			return err == nil, err
		}
	}
	if at, err = p.commit(number); err != nil {
		return false, err
	}
	if at.x.Verbatim {
		return p.hasVerbatim(at, ref)
	}
	for {
		if at.x.Has(ref) || !at.x.Open {
			return at.x.Has(ref), nil
		}
		if at, err = p.after(at); err != nil {
			return false, err
		}
	}
}

func (p *File) hasVerbatim(at commitPiece, ref structure.SpanRef) (bool, error) {
	body, err := p.bodyIn(at.c.bodies, uint64(at.x.Bodies[0]))
	if err != nil {
		return false, err
	}
	d, err := structure.NewDecoder(body)
	for err == nil && d.More() {
		var r structure.Record
		if _, r, err = d.Next(); err == nil {
			if s, ok := r.(*structure.Span); ok && s.Ref == ref {
				return true, nil
			}
		}
	}
	return false, nil
}

// Position returns the position of a commit's frame.
func (p *File) Position(number uint64) (segment uint32, offset int64, err error) {
	continuations, _, err := p.continuationsOf(number)
	if err != nil {
		return 0, 0, err
	}
	if len(continuations) > 0 {
		return continuations[0].Segment, continuations[0].Rest.FrameStart, nil
	}
	at, err := p.commit(number)
	if err != nil {
		return 0, 0, err
	}
	return at.x.Segment, at.x.Start, nil
}
