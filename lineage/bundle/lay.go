package bundle

import (
	"errors"
	"strconv"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// stretch says where spans of a run of the bundle are here: those after a place of it
// are in a run of their own, from its start.
type stretch struct {
	after uint64
	run   structure.RunID
}

// How the spans of a piece are dealt with.
type mode int

const (
	unsettled mode = iota
	skipping       // they are here
	comparing      // some of them may be
	adding
)

// laying is a piece whose spans are on their way into the store.
type laying struct {
	piece
	run    structure.RunID   // the run here
	after  uint64            // place in the bundle's run that its first span follows
	parent structure.SpanRef // of the run here, when it is new
	create bool

	mode   mode
	at     uint64 // last place that was dealt with
	digest structure.Digest
	have   uint64             // where the run here ended
	window []structure.Digest // of the run here
	first  uint64             // place that the window starts at
}

// coming is what a commit in the making brings.
type coming struct {
	digests map[structure.SpanRef]structure.Digest
	ends    map[structure.RunID]uint64
	sets    map[structure.SpanSetID]struct{}
}

func newComing() coming {
	return coming{digests: make(map[structure.SpanRef]structure.Digest), ends: make(map[structure.RunID]uint64), sets: make(map[structure.SpanSetID]struct{})}
}

func (c *coming) reset() {
	clear(c.digests)
	clear(c.ends)
	clear(c.sets)
}

// here returns where a span of the bundle is in the store.
func (im *importer) here(ref structure.SpanRef) structure.SpanRef {
	stretches := im.moved[ref.Run]
	for i := len(stretches) - 1; i >= 0; i-- {
		if s := stretches[i]; ref.Seq > s.after {
			return structure.SpanRef{Run: s.run, Seq: ref.Seq - s.after}
		}
	}
	return ref
}

// digestOf returns the digest of a history in the store or in the coming commit.
func (im *importer) digestOf(ref structure.SpanRef) (structure.Digest, error) {
	if ref.IsZero() {
		return structure.Digest{}, nil
	}
	if d, ok := im.coming.digests[ref]; ok {
		return d, nil
	}
	return im.engine.Digest(im.ctx, ref)
}

// settle finds out where a piece belongs.
func (im *importer) settle(l *laying) error {
	id := l.piece.run.ID
	on := structure.SpanRef{Run: id, Seq: l.from}
	if l.from == 0 {
		on = l.piece.run.Parent
	}
	on = im.here(on)
	d, err := im.digestOf(on)
	if err == nil && d != l.before {
		return im.corrupt("run %v has the digest of another history", id)
	}
	if err != nil {
		return err
	}
	l.at, l.digest = l.from, d
	if l.from == 0 {
		l.run, l.parent = id, on
	} else {
		l.run, l.after = on.Run, l.from-on.Seq
	}
	return im.choose(l)
}

// choose decides what becomes of the spans that follow.
func (im *importer) choose(l *laying) error {
	for {
		first := l.at - l.after
		if end, ok := im.coming.ends[l.run]; ok {
			if end == first {
				l.mode = adding
				return nil
			}
			im.branchOff(l)
			continue
		}
		info, err := im.engine.Run(im.ctx, l.run)
		if errors.Is(err, backend.ErrNotFound) && first == 0 {
			l.mode, l.create = adding, true
			return nil
		}
		if err != nil {
			return err
		}
		if first == 0 && (info.Parent != l.parent || info.Digest != l.digest) {
			im.branchOff(l)
			continue
		}
		last, err := im.engine.Last(im.ctx, l.run)
		if err != nil {
			return err
		}
		if last.Seq <= first {
			if branched, err := im.branchedOff(l); err != nil {
				return err
			} else if branched {
				im.branchOff(l)
				continue
			}
			l.mode = adding
			return nil
		}
		if end := (structure.SpanRef{Run: l.run, Seq: l.last - l.after}); last.Seq >= end.Seq {
			if d, err := im.engine.Digest(im.ctx, end); err != nil {
				return err
			} else if d == l.piece.digest {
				l.mode = skipping
				return nil
			}
		}
		l.mode, l.have, l.window = comparing, last.Seq, nil
		return nil
	}
}

// branchName returns the run into which spans of the bundle go that cannot follow in
// their own, and the span that it follows. It is the same at every import.
func (l *laying) branchName() (structure.RunID, structure.SpanRef) {
	first := l.at - l.after
	id := structure.DeriveID[structure.RunID]("bundle", l.run.String(), strconv.FormatUint(first, 10))
	if first == 0 {
		return id, l.parent
	}
	return id, structure.SpanRef{Run: l.run, Seq: first}
}

// branchedOff reports whether the spans that follow went into a run of their own
// before, or have to because nothing can be added to theirs.
func (im *importer) branchedOff(l *laying) (bool, error) {
	if _, closed := im.closed[l.run]; closed {
		return true, nil
	}
	id, parent := l.branchName()
	r, err := im.engine.Run(im.ctx, id)
	if errors.Is(err, backend.ErrNotFound) {
		return false, nil
	}
	return err == nil && r.Parent == parent, err
}

// branchOff puts the spans that follow into a run of their own.
func (im *importer) branchOff(l *laying) {
	id, parent := l.branchName()
	l.run, l.parent, l.after = id, parent, l.at
	im.moved[l.piece.run.ID] = append(im.moved[l.piece.run.ID], stretch{after: l.at, run: id})
}

// lay returns the records that a span of the bundle comes to: none when it is here. The span
// gets its address here.
func (im *importer) lay(s *structure.Span) ([]structure.Record, error) {
	l := im.open[s.Ref.Run]
	if l == nil || l.mode != unsettled && s.Ref.Seq != l.at+1 || l.mode == unsettled && s.Ref.Seq != l.from+1 {
		return nil, im.corrupt("span %v was not announced, or is out of order", s.Ref)
	}
	if l.mode == unsettled {
		if err := im.settle(l); err != nil {
			return nil, err
		}
	}
	d := structure.NextDigest(l.digest, s.Usages)
	for l.mode == comparing {
		same := false
		if place := l.at + 1 - l.after; place <= l.have {
			is, err := im.digestAt(l, place)
			if err != nil {
				return nil, err
			}
			if same = is == d; !same {
				im.branchOff(l)
			}
		}
		if same {
			break
		}
		if err := im.choose(l); err != nil {
			return nil, err
		}
	}
	l.at, l.digest = s.Ref.Seq, d
	if l.at == l.last {
		delete(im.open, s.Ref.Run)
	}
	if l.mode != adding {
		return nil, nil
	}
	var records []structure.Record
	if l.create {
		home, err := im.homeHere(l.piece.run.Home)
		if err != nil {
			return nil, err
		}
		run := l.piece.run
		run.ID, run.Parent, run.Home = l.run, l.parent, home
		records, l.create = append(records, &run), false
	}
	s.Ref = structure.SpanRef{Run: l.run, Seq: l.at - l.after}
	im.coming.digests[s.Ref], im.coming.ends[l.run] = d, s.Ref.Seq
	return append(records, s), nil
}

// homeHere returns the home that a run gets. A thread that is here has an
// incarnation of its own; one that is not will come with the bundle's, or not at all.
func (im *importer) homeHere(h structure.Home) (structure.Home, error) {
	if h.Thread.IsZero() {
		return h, nil
	}
	t, err := im.engine.Thread(im.ctx, h.Thread)
	if errors.Is(err, backend.ErrNotFound) {
		return h, nil
	}
	if err != nil {
		return h, err
	}
	return t.Home(), nil
}

const windowSize = 256

// digestAt returns the digest at a place of the run here, of which everything before
// is as in the bundle.
func (im *importer) digestAt(l *laying, place uint64) (structure.Digest, error) {
	if i := place - l.first; l.window != nil && place >= l.first && i < uint64(len(l.window)) {
		return l.window[i], nil
	}
	info, err := im.engine.Run(im.ctx, l.run)
	if err != nil {
		return structure.Digest{}, err
	}
	end := structure.SpanRef{Run: l.run, Seq: min(l.have, place+windowSize-1)}
	l.window, l.first = l.window[:0], place
	d := l.digest
	for step, err := range im.engine.Path(im.ctx, end, structure.Window{From: info.Position(place)}, backend.PathOptions{}) {
		if err != nil {
			return d, err
		}
		d = structure.NextDigest(d, step.Span.Usages)
		l.window = append(l.window, d)
	}
	return l.window[0], nil
}
