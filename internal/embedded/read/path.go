package read

import (
	"context"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Path implements backend.Reader.
func (v *View) Path(ctx context.Context, at structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
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
		r := v.newPathReader(o)
		ahead := uint64(spansAhead)
		for _, s := range segments {
			next := s.First
			for seq := s.First; seq <= s.Last; seq++ {
				if ctx.Err() != nil {
					fail(context.Cause(ctx))
					return
				}
				if seq == next {
					if err := v.PrefetchSpans(ctx, s.Run.ID, seq, min(s.Last, seq+ahead-1)); err != nil {
						fail(err)
						return
					}
					next, ahead = seq+ahead, min(2*ahead, mostSpansAhead)
				}
				step, err := r.step(ctx, s, seq, min(s.Last, next-1))
				if !yield(step, err) || err != nil {
					return
				}
			}
		}
	}
}

// Steps yields the steps of spans, in their order and with bodies. The view must have a prefetcher: it reads at once what many
// of them need.
func (v *View) Steps(ctx context.Context, refs []structure.SpanRef) iter.Seq2[*backend.Step, error] {
	return func(yield func(*backend.Step, error) bool) {
		r := v.newPathReader(backend.PathOptions{Bodies: true})
		for some := range slices.Chunk(refs, spansAhead) {
			segments, err := v.prefetchRefs(ctx, some)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range segments {
				var step *backend.Step
				if len(r.window) == 0 {
					err = r.readAhead(ctx, func(yield func(structure.Segment, uint64) bool) {
						for _, s := range segments[i:] {
							if !yield(s, s.First) {
								return
							}
						}
					})
				}
				if err == nil {
					step, err = r.fromWindow()
				}
				if err != nil {
					break
				}
				if !yield(step, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// pathReader reads the steps of a path in order.
type pathReader struct {
	spans    *SpanReader
	bodies   bool
	erasures bool
	passing  bool
	memory   *stepMemory
	window   []*stepMemory // with a prefetcher: steps that were read ahead
	used     []*stepMemory // the memory of all of them, which passing steps share
}

// stepMemory is the memory of a typical step in one allocation.
type stepMemory struct {
	step    backend.Step
	reading structure.Reading
	blocks  [1]*structure.Block
}

func (v *View) newPathReader(o backend.PathOptions) *pathReader {
	return &pathReader{
		spans: v.NewSpanReader(), bodies: o.Bodies, erasures: o.Bodies && v.anyErased(), passing: o.Passing, memory: &stepMemory{},
	}
}

// step returns the step at a place in a segment of a path. Spans up to last are prefetched.
func (r *pathReader) step(ctx context.Context, s structure.Segment, seq, last uint64) (*backend.Step, error) {
	if r.bodies && r.spans.view.Ahead != nil {
		if len(r.window) == 0 {
			if err := r.readAhead(ctx, spansOf(s, seq, last)); err != nil {
				return nil, err
			}
		}
		return r.fromWindow()
	}
	if !r.passing {
		r.memory = &stepMemory{}
	}
	if err := r.read(s, seq, r.memory); err != nil {
		return nil, err
	}
	return r.withBodies(r.memory)
}

// fromWindow returns the next step of the window.
func (r *pathReader) fromWindow() (*backend.Step, error) {
	m := r.window[0]
	r.window = r.window[1:]
	return r.withBodies(m)
}

// withBodies returns a step that was read, with bodies if they are wanted.
func (r *pathReader) withBodies(m *stepMemory) (*backend.Step, error) {
	if !r.bodies {
		return &m.step, nil
	}
	m.step.Blocks = append(m.blocks[:0], m.reading.Local...)
	for i, local := range m.step.Blocks {
		if local != nil && !local.Gone() && !r.erasures {
			continue
		}
		var err error
		if m.step.Blocks[i], err = r.spans.view.body(m.reading.Span.Usages[i].Content, local, r.erasures); err != nil {
			return nil, err
		}
	}
	return &m.step, nil
}

// read reads the span of a step.
func (r *pathReader) read(s structure.Segment, seq uint64, m *stepMemory) error {
	if err := r.spans.Read(structure.SpanRef{Run: s.Run.ID, Seq: seq}, s.Last, &m.reading); err != nil {
		return err
	}
	m.step = backend.Step{Position: s.Run.Position(seq), Commit: r.spans.number, Span: &m.reading.Span}
	return nil
}

// mostReadAhead limits the bodies of the steps that are read ahead, in bytes.
const mostReadAhead = 4 << 20

// spansOf yields the spans of a segment from first to last.
func spansOf(s structure.Segment, first, last uint64) iter.Seq2[structure.Segment, uint64] {
	return func(yield func(structure.Segment, uint64) bool) {
		for seq := first; seq <= last && yield(s, seq); seq++ {
		}
	}
}

// readAhead reads a window of steps, at least the first, and prefetches what their bodies need besides.
func (r *pathReader) readAhead(ctx context.Context, spans iter.Seq2[structure.Segment, uint64]) error {
	if !r.passing {
		r.used = nil
	}
	n, size := 0, 0
	for s, seq := range spans {
		if size >= mostReadAhead {
			break
		}
		if n == len(r.used) {
			r.used = append(r.used, &stepMemory{})
		}
		m := r.used[n]
		if err := r.read(s, seq, m); err != nil {
			if n == 0 {
				return err
			}
			break // it is returned when it is reached
		}
		for _, b := range m.reading.Local {
			if b != nil {
				size += len(b.Body)
			}
		}
		n++
	}
	r.window = r.used[:n]
	return r.spans.view.prefetchBodies(ctx, r.window, r.erasures)
}

// prefetchBodies prefetches what the bodies of steps need that their commits do not have.
func (v *View) prefetchBodies(ctx context.Context, steps []*stepMemory, erasures bool) error {
	var need Need
	var blocks [][]byte
	seen := make(map[content.ID]struct{})
	for _, m := range steps {
		for i, local := range m.reading.Local {
			elsewhere := local == nil || local.Gone()
			if !elsewhere && !erasures {
				continue
			}
			id := m.reading.Span.Usages[i].Content
			if _, known := seen[id]; known {
				continue
			}
			seen[id] = struct{}{}
			if elsewhere {
				blocks = append(blocks, keys.Block(id))
			}
			if erasures {
				need.Keys = append(need.Keys, keys.Of(keys.TableErased, id[:]))
			}
		}
	}
	need.Keys = append(need.Keys, blocks...)
	if len(need.Keys) == 0 {
		return nil
	}
	if err := v.Ahead.Prefetch(ctx, need); err != nil {
		return err
	}
	return v.prefetchPlaces(ctx, blocks)
}

// body returns the block of a usage: the given one from the same commit, or the stored one. For an erased block it
// returns only the description.
func (v *View) body(id content.ID, found *structure.Block, erasures bool) (*structure.Block, error) {
	if erasures {
		if ok, err := v.NotErased(id); err != nil {
			return nil, err
		} else if !ok {
			if found == nil {
				return v.description(id)
			}
			return structure.Described(found.Block), nil
		}
	}
	if found != nil && !found.Gone() {
		return found, nil
	}
	b, err := v.block(v.Commits.NewReader(), id)
	if err != nil || found == nil {
		return b, err
	}
	// The block was erased, collected, and stored again for another use. The first description stays valid for this
	// usage.
	own := *b
	own.Block = found.Block
	return &own, nil
}

func (v *View) requireSpan(r structure.SpanRef) error {
	if r.IsZero() {
		return nil
	}
	_, err := v.spanEntry(r)
	return err
}

func (v *View) runs() structure.RunLookup {
	return func(id structure.RunID) (structure.RunInfo, error) { return Run(v.Index, id) }
}

// Digest implements backend.Reader.
func (v *View) Digest(_ context.Context, r structure.SpanRef) (structure.Digest, error) {
	if err := v.requireSpan(r); err != nil || r.IsZero() {
		return structure.Digest{}, err
	}
	if v.Digests == nil {
		return v.ComputeDigest(r)
	}
	if d, ok := v.Digests.Digest(r); ok {
		return d, nil
	}
	d, err := v.ComputeDigest(r)
	if err == nil {
		v.Digests.SetDigest(r, d)
	}
	return d, err
}

// ComputeDigest computes the digest of a span from the last stored digest before
// it.
func (v *View) ComputeDigest(r structure.SpanRef) (structure.Digest, error) {
	if r.IsZero() {
		return structure.Digest{}, nil
	}
	var d structure.Digest
	if v.Ahead != nil { // each span has its digest
		value, ok, err := v.Index.Get(keys.Span(r))
		if err != nil {
			return d, err
		}
		p, err := keys.ReadSpanLocation(value)
		if !ok || err != nil || p.Digest == d {
			return d, v.missingSpan(r)
		}
		return p.Digest, nil
	}
	first := r.Seq - r.Seq%keys.DigestEvery
	if first == 0 {
		run, err := Run(v.Index, r.Run)
		if err != nil {
			return d, err
		}
		d = run.Digest
	} else {
		value, ok, err := v.Index.Get(keys.Span(structure.SpanRef{Run: r.Run, Seq: first}))
		if err != nil {
			return d, err
		}
		p, err := keys.ReadSpanLocation(value)
		if !ok || err != nil {
			return d, v.missingSpan(structure.SpanRef{Run: r.Run, Seq: first})
		}
		d = p.Digest
	}
	if first == r.Seq {
		return d, nil
	}
	spans, reading := v.NewSpanReader(), structure.Reading{}
	for seq := first + 1; seq <= r.Seq; seq++ {
		if err := spans.Read(structure.SpanRef{Run: r.Run, Seq: seq}, r.Seq, &reading); err != nil {
			return d, err
		}
		d = structure.NextDigest(d, reading.Span.Usages)
	}
	return d, nil
}
