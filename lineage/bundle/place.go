package bundle

import (
	"errors"
	"strconv"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// digestOf returns the digest of a history in the store or the pending commit.
func (im *importer) digestOf(ref structure.SpanRef) (structure.Digest, error) {
	if ref.IsZero() {
		return structure.Digest{}, nil
	}
	if d, ok := im.pending.digests[ref]; ok {
		return d, nil
	}
	return im.engine.Digest(im.ctx, ref)
}

// locate finds the run in the store that the spans of a piece belong to.
func (im *importer) locate(l *incoming) error {
	id := l.runPiece.run.ID
	before := structure.SpanRef{Run: id, Seq: l.from}
	if l.from == 0 {
		before = l.runPiece.run.Parent
	}
	before = im.local(before)
	d, err := im.digestOf(before)
	if err == nil && d != l.before {
		return im.in.corrupt("run %v has the digest of another history", id)
	}
	if err != nil {
		return err
	}
	if l.from == 0 {
		l.run, l.parent = id, before
	} else {
		l.run, l.after = before.Run, l.from-before.Seq
	}
	return im.chooseMode(l)
}

// chooseMode chooses how the following spans are handled.
func (im *importer) chooseMode(l *incoming) error {
	for {
		first := l.at - l.after
		if end, ok := im.pending.ends[l.run]; ok {
			if end == first {
				l.mode = adding
				return nil
			}
			im.fork(l)
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
			im.fork(l)
			continue
		}
		last, err := im.engine.Last(im.ctx, l.run)
		if err != nil {
			return err
		}
		if last.Seq <= first {
			if fork, err := im.mustFork(l); err != nil {
				return err
			} else if fork {
				im.fork(l)
				continue
			}
			l.mode = adding
			return nil
		}
		if end := (structure.SpanRef{Run: l.run, Seq: l.last - l.after}); last.Seq >= end.Seq {
			if d, err := im.engine.Digest(im.ctx, end); err != nil {
				return err
			} else if d == l.runPiece.digest {
				l.mode = skipping
				return nil
			}
		}
		l.mode, l.stored, l.window = comparing, last.Seq, nil
		return nil
	}
}

// forkRun returns the run for spans that cannot be added to their own run, and its parent. Every import derives the
// same run.
func (l *incoming) forkRun() (structure.RunID, structure.SpanRef) {
	first := l.at - l.after
	id := structure.DeriveID[structure.RunID]("bundle", l.run.String(), strconv.FormatUint(first, 10))
	if first == 0 {
		return id, l.parent
	}
	return id, structure.SpanRef{Run: l.run, Seq: first}
}

// mustFork reports whether the following spans go into another run, because an earlier import put them there or their
// own run is closed.
func (im *importer) mustFork(l *incoming) (bool, error) {
	if im.closed[l.run] {
		return true, nil
	}
	id, parent := l.forkRun()
	r, err := im.engine.Run(im.ctx, id)
	if errors.Is(err, backend.ErrNotFound) {
		return false, nil
	}
	return err == nil && r.Parent == parent, err
}

// fork directs the following spans into another run.
func (im *importer) fork(l *incoming) {
	id, parent := l.forkRun()
	l.run, l.parent, l.after = id, parent, l.at
	im.relocated[l.runPiece.run.ID] = append(im.relocated[l.runPiece.run.ID], relocation{after: l.at, run: id})
}

// place returns the records that add a span, none if the store has it. It sets the ref of the span to its ref in the
// store.
func (im *importer) place(s *structure.Span) ([]structure.Record, error) {
	l := im.open.of(s)
	if l == nil {
		return nil, im.in.corrupt("span %v is in no piece, or out of order", s.Ref)
	}
	if l.mode == unlocated {
		if err := im.locate(l); err != nil {
			return nil, err
		}
	}
	d := structure.NextDigest(l.digest, s.Usages)
	for l.mode == comparing {
		if place := l.at + 1 - l.after; place <= l.stored { // the store's run has a span there
			local, err := im.digestAt(l, place)
			if err != nil {
				return nil, err
			}
			if local == d {
				break
			}
			im.fork(l)
		}
		if err := im.chooseMode(l); err != nil {
			return nil, err
		}
	}
	im.open.advance(l, d)
	if l.mode != adding {
		return nil, nil
	}
	var records []structure.Record
	if l.create {
		home, err := im.localHome(l.runPiece.run.Home)
		if err != nil {
			return nil, err
		}
		run := l.runPiece.run
		run.ID, run.Parent, run.Home = l.run, l.parent, home
		records, l.create = append(records, &run), false
	}
	s.Ref = structure.SpanRef{Run: l.run, Seq: l.at - l.after}
	im.pending.digests[s.Ref], im.pending.ends[l.run] = d, s.Ref.Seq
	return append(records, s), nil
}

// localHome returns the home of a run in the store. A thread may have another incarnation in the store than in the
// bundle.
func (im *importer) localHome(h structure.Home) (structure.Home, error) {
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

// windowSize is the number of digests that are read at once.
const windowSize = 256

// digestAt returns the digest at a place of the run in the store. Up to that place the run is the same as in the
// bundle. The digests of the places after it are kept for the next calls.
func (im *importer) digestAt(l *incoming, place uint64) (structure.Digest, error) {
	if i := place - l.first; l.window != nil && place >= l.first && i < uint64(len(l.window)) {
		return l.window[i], nil
	}
	info, err := im.engine.Run(im.ctx, l.run)
	if err != nil {
		return structure.Digest{}, err
	}
	end := structure.SpanRef{Run: l.run, Seq: min(l.stored, place+windowSize-1)}
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
