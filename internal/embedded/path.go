package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func be64value(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

// frames decodes the frames of spans. Spans that are read in order and stand in
// one frame are decoded in one pass over it.
type frames struct {
	view    view
	reader  *journal.Reader
	at      journal.Position
	number  uint64
	decoder structure.Decoder
	loaded  bool
}

func (v view) newFrames() *frames { return &frames{view: v, reader: v.newReader()} }

func (f *frames) load(p journal.Position) error {
	frame, err := f.reader.Frame(p)
	if err != nil {
		return err
	}
	f.at, f.number, f.loaded = p, frame.Number, true
	if err := f.decoder.Reset(frame.Payload); err != nil {
		return f.corrupt(err.Error())
	}
	return nil
}

func (f *frames) corrupt(what string) error {
	return &backend.CorruptError{File: f.reader.Name(), Offset: f.at.Offset, What: what}
}

// span returns the span at a place in a frame.
func (f *frames) span(p journal.Position, ref structure.SpanRef) (*structure.Span, error) {
	for _, again := range []bool{false, true} {
		if again || !f.loaded || f.at != p {
			if err := f.load(p); err != nil {
				return nil, err
			}
		}
		s, err := f.decoder.Seek(ref)
		if err != nil {
			return nil, f.corrupt(err.Error())
		}
		if s != nil {
			return s, nil
		}
	}
	return nil, f.corrupt(fmt.Sprintf("span %v is not in the commit that the index names", ref))
}

// body returns a block of a span that was just returned: from its frame, or from
// where else it is stored. Of an erased block nothing but its description is left.
func (f *frames) body(id content.ID, erasures bool) (*structure.Block, error) {
	found := f.decoder.Local(id)
	if erasures {
		if ok, err := f.view.notErased(id); err != nil {
			return nil, err
		} else if !ok {
			if found == nil {
				return f.view.description(id)
			}
			return &structure.Block{Block: found.Block}, nil
		}
	}
	if found != nil && !found.Gone() {
		return found, nil
	}
	b, err := f.view.block(f.view.newReader(), id)
	if err != nil || found == nil {
		return b, err
	}
	// The bytes were erased, collected, and stored again by somebody else: whoever
	// brought them first is not spoken for by that.
	own := *b
	own.Block = found.Block
	return &own, nil
}

// Path implements backend.Reader.
func (v view) Path(ctx context.Context, at structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	return func(yield func(*backend.Step, error) bool) {
		fail := func(err error) { yield(nil, err) }
		if err := v.requireSpan(at); err != nil {
			fail(err)
			return
		}
		segments, err := structure.Segments(at, w, v.runs())
		if err != nil {
			fail(err)
			return
		}
		erasures := o.Bodies && v.anyErased()
		f := v.newFrames()
		for _, s := range segments {
			if !v.segment(ctx, f, s, o, erasures, yield) {
				return
			}
		}
	}
}

// segment yields the spans of a stretch of a run and reports whether to go on.
func (v view) segment(ctx context.Context, f *frames, s structure.Segment, o backend.PathOptions, erasures bool, yield func(*backend.Step, error) bool) bool {
	seq := s.First
	for e, err := range v.spans(s.Run.ID, s.First, s.Last) {
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		var step *backend.Step
		if err == nil {
			step, err = v.step(f, s, seq, e, o, erasures)
		}
		if !yield(step, err) || err != nil {
			return false
		}
		seq++
	}
	if seq <= s.Last {
		yield(nil, v.missingSpan(structure.SpanRef{Run: s.Run.ID, Seq: seq}))
		return false
	}
	return true
}

func (v view) missingSpan(ref structure.SpanRef) error {
	return &backend.CorruptError{File: v.engine.indexPath(), What: fmt.Sprintf("span %v is missing; to repair: %s", ref, backend.RebuildIndex)}
}

func (v view) step(f *frames, s structure.Segment, seq uint64, e index.Entry, o backend.PathOptions, erasures bool) (*backend.Step, error) {
	ref := structure.SpanRef{Run: s.Run.ID, Seq: seq}
	if be64value(e.Key[len(e.Key)-8:]) != seq {
		return nil, v.missingSpan(ref)
	}
	p, err := readSpanPlace(e.Value)
	if err != nil {
		return nil, err
	}
	span, err := f.span(p.frame, ref)
	if err != nil {
		return nil, err
	}
	step := &backend.Step{Position: s.Run.Position(seq), Commit: f.number, Span: span}
	if o.Bodies {
		step.Blocks = make([]*structure.Block, len(span.Usages))
		for i := range span.Usages {
			if step.Blocks[i], err = f.body(span.Usages[i].Content, erasures); err != nil {
				return nil, err
			}
		}
	}
	return step, nil
}

// spans yields the index entries of a run's spans from first to last.
func (v view) spans(run structure.RunID, first, last uint64) iter.Seq2[index.Entry, error] {
	return spansOf(v.index, run, first, last)
}

func spansOf(s *index.Snapshot, run structure.RunID, first, last uint64) iter.Seq2[index.Entry, error] {
	from := spanKey(structure.SpanRef{Run: run, Seq: first})
	return s.Scan(from, append(spanKey(structure.SpanRef{Run: run, Seq: last}), 0))
}

func (v view) requireSpan(r structure.SpanRef) error {
	if r.IsZero() {
		return nil
	}
	_, ok, err := v.index.Get(spanKey(r))
	if err == nil && !ok {
		err = &backend.SubjectError{Subject: "span", ID: r.String(), Err: backend.ErrNotFound}
	}
	return err
}

func (v view) runs() structure.RunLookup {
	return func(id structure.RunID) (structure.RunInfo, error) { return readRunInfo(v.index, id) }
}

func (v view) anyErased() bool { return countersOf(v.index.State().Counts).erased > 0 }

// Digest implements backend.Reader.
func (v view) Digest(_ context.Context, r structure.SpanRef) (structure.Digest, error) {
	if err := v.requireSpan(r); err != nil || r.IsZero() {
		return structure.Digest{}, err
	}
	if d, ok := v.engine.knownDigest(r); ok {
		return d, nil
	}
	d, err := v.computeDigest(v.index, r)
	if err == nil {
		v.engine.digests.set(r, d)
	}
	return d, err
}

// knownDigest returns the digest of a span when it is at hand.
func (e *Engine) knownDigest(r structure.SpanRef) (structure.Digest, bool) {
	if end, ok := e.ends.get(r.Run); ok && end.seq == r.Seq && r.Seq != 0 {
		return end.digest, true
	}
	return e.digests.get(r)
}

// computeDigest computes the digest of a span that the journal holds from the
// last one kept before it. The state is where runs are looked up.
func (e *Engine) computeDigest(state kv, r structure.SpanRef) (structure.Digest, error) {
	v := e.now()
	defer v.release()
	return v.computeDigest(state, r)
}

func (v view) computeDigest(state kv, r structure.SpanRef) (structure.Digest, error) {
	if r.IsZero() {
		return structure.Digest{}, nil
	}
	var d structure.Digest
	first := r.Seq - r.Seq%digestEvery
	if first == 0 {
		run, err := readRunInfo(state, r.Run)
		if err != nil {
			return d, err
		}
		d = run.Digest
	} else {
		value, ok, err := v.index.Get(spanKey(structure.SpanRef{Run: r.Run, Seq: first}))
		if err != nil {
			return d, err
		}
		p, err := readSpanPlace(value)
		if !ok || err != nil {
			return d, v.missingSpan(structure.SpanRef{Run: r.Run, Seq: first})
		}
		d = p.digest
	}
	if first == r.Seq {
		return d, nil
	}
	f, seq := v.newFrames(), first+1
	for e, err := range v.spans(r.Run, seq, r.Seq) {
		if err != nil {
			return d, err
		}
		p, err := readSpanPlace(e.Value)
		if err != nil {
			return d, err
		}
		s, err := f.span(p.frame, structure.SpanRef{Run: r.Run, Seq: seq})
		if err != nil {
			return d, err
		}
		d = structure.NextDigest(d, s.Usages)
		seq++
	}
	if seq != r.Seq+1 {
		return d, v.missingSpan(structure.SpanRef{Run: r.Run, Seq: seq})
	}
	return d, nil
}
