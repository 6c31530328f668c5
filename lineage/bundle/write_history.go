package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// path writes the history up to a span, except for what was written before.
func (e *exporter) path(to structure.SpanRef) error {
	var ends []structure.SpanRef
	runs := e.lookup()
	for ref := to; !ref.IsZero() && e.runs[ref.Run] < ref.Seq; {
		r, err := runs(ref.Run)
		if err != nil {
			return err
		}
		ends, ref = append(ends, ref), r.Parent
	}
	for _, end := range slices.Backward(ends) {
		if err := e.piece(end); err != nil {
			return fmt.Errorf("span %v: %w", end, err)
		}
	}
	return nil
}

// piece writes a run up to a span, except for what was written before.
func (e *exporter) piece(end structure.SpanRef) error {
	if e.busy[end.Run] {
		return fmt.Errorf("span %v follows itself: %w", end, backend.ErrCorrupt)
	}
	if e.pendingRuns[end.Run] { // the spans of the previous piece come first
		if err := e.flush(entryHistory, &e.pending); err != nil {
			return err
		}
	}
	info, err := e.from.Run(e.ctx, end.Run)
	if err != nil {
		return err
	}
	p := runPiece{run: info.Run, base: info.Digest, from: e.runs[end.Run], last: end.Seq}
	if p.digest, err = e.from.Digest(e.ctx, end); err != nil {
		return err
	}
	known, err := e.known(end)
	if err != nil {
		return err
	}
	if known > p.from {
		p.from, p.omitted = known, true
	}
	if p.before = p.base; p.from != 0 {
		if p.before, err = e.from.Digest(e.ctx, structure.SpanRef{Run: end.Run, Seq: p.from}); err != nil {
			return err
		}
	}
	e.runs[end.Run] = p.from
	b, err := p.encode()
	if err != nil {
		return err
	}
	if err := e.out.entry(entryRun, b); err != nil || p.from == p.last {
		return err
	}
	e.busy[end.Run] = true
	defer delete(e.busy, end.Run)
	for step, err := range e.from.Path(e.ctx, end, structure.Window{From: info.Position(p.from + 1)}, backend.PathOptions{Bodies: true}) {
		if err != nil {
			return err
		}
		if err := e.span(step); err != nil {
			return err
		}
		e.runs[end.Run] = step.Span.Ref.Seq
	}
	return nil
}

// known returns the last place up to which the other store has the same run.
func (e *exporter) known(end structure.SpanRef) (uint64, error) {
	known, ok := e.o.Have.runs[end.Run]
	if !ok || known.last == 0 {
		return 0, nil
	}
	at := structure.SpanRef{Run: end.Run, Seq: known.last}
	d, err := e.from.Digest(e.ctx, at)
	if errors.Is(err, backend.ErrNotFound) {
		return 0, nil // the other store's run is longer
	}
	if err != nil || d != known.digest {
		return 0, err
	}
	return min(known.last, end.Seq), nil
}

func (e *exporter) span(step *backend.Step) error {
	s := step.Span
	if !s.Set.IsZero() {
		if err := e.spanSet(s.Set); err != nil {
			return err
		}
	}
	if full(&e.pending) {
		if err := e.flush(entryHistory, &e.pending); err != nil {
			return err
		}
	}
	for i := range s.Usages {
		u := &s.Usages[i]
		var b *structure.Block
		if i < len(step.Blocks) {
			b = step.Blocks[i]
		}
		if err := e.used(u.Content, b); err != nil {
			return err
		}
		for _, id := range [...]content.ID{u.Form, u.MetadataContent} {
			if err := e.content(id); err != nil {
				return err
			}
		}
	}
	e.setTime(s.Usages[0].CreatedAt)
	s = e.explicit(step)
	for i := range s.Usages {
		if o := s.Usages[i].Origin; o != nil {
			if err := e.derived(o.ParentID); err != nil {
				return err
			}
		}
	}
	e.pending.Adopt(s)
	e.pendingRuns[s.Ref.Run] = true
	if e.report.Spans++; e.o.Progress != nil && e.report.Spans%1024 == 0 {
		e.o.Progress(e.report.Spans)
	}
	return nil
}

// setTime sets the time of the pending history if it has none. Times in records are relative to it.
func (e *exporter) setTime(at time.Time) {
	if empty(&e.pending) && e.pending.Time().IsZero() {
		e.pending.Reset(at)
	}
}

func (e *exporter) spanSet(id structure.SpanSetID) error {
	if e.sets[id] {
		return nil
	}
	e.sets[id] = true
	s, err := e.from.SpanSet(e.ctx, id)
	if err != nil {
		return err
	}
	if err := e.path(s.Parent); err != nil {
		return err
	}
	e.setTime(s.CreatedAt)
	e.pending.Adopt(s)
	return nil
}

// defaults are the values of a block for usages that do not have their own.
type defaults struct {
	mediaType string
	origin    content.BlockOrigin
}

// hash returns the hash of the defaults of a block.
func (e *exporter) hash(b *structure.Block) uint64 {
	return maphash.Comparable(e.seed, defaults{b.Type, b.Origin})
}

// explicit returns the span of a step. A usage whose block was written with other defaults than the step's states its type and
// origin itself. Defaults differ if a block was erased and stored again.
func (e *exporter) explicit(step *backend.Step) *structure.Span {
	s := step.Span
	for i, b := range step.Blocks {
		u := &s.Usages[i]
		if u.Type != "" && u.Origin != nil || b.Type == "" || e.written[prefixOf(u.Content)] == e.hash(b) {
			continue
		}
		if s == step.Span {
			own := *s
			own.Usages = slices.Clone(s.Usages)
			s, u = &own, &own.Usages[i]
		}
		u.Settle(&b.Block)
	}
	return s
}

// content writes the block with an id, if the store has it.
func (e *exporter) content(id content.ID) error {
	if id.IsZero() {
		return nil
	}
	if _, known := e.written[prefixOf(id)]; known {
		return nil
	}
	blocks, err := e.from.Blocks(e.ctx, []content.ID{id})
	switch {
	case errors.Is(err, backend.ErrErased):
		b, err := e.findDescription(id)
		if err != nil {
			return err
		}
		return e.erased(b)
	case errors.Is(err, backend.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return e.used(id, blocks[0])
}

// findDescription returns the description of an erased block. It is taken from a span that uses the block. If only
// summaries or values use it, the size is unknown.
func (e *exporter) findDescription(id content.ID) (*structure.Block, error) {
	for u, err := range e.from.Where(e.ctx, id) {
		if err != nil {
			return nil, err
		}
		for step, err := range e.from.Path(e.ctx, u.Span, structure.Window{Last: 1}, backend.PathOptions{Bodies: true}) {
			if err != nil {
				return nil, err
			}
			if step.Span.Usages[u.Index].Content == id {
				return step.Blocks[u.Index], nil
			}
		}
	}
	return structure.Described(content.Block{ID: id, Size: 1}), nil
}

// used writes a block and the blocks that it was derived from. b may be nil; then the block is read.
func (e *exporter) used(id content.ID, b *structure.Block) error {
	if _, known := e.written[prefixOf(id)]; known {
		return nil
	}
	if b == nil {
		return e.content(id)
	}
	if b.Gone() || b.Size == 0 {
		has, err := e.from.Has(e.ctx, []content.ID{id})
		if err != nil {
			return err
		}
		if !has[0] {
			return e.erased(b)
		}
	}
	e.written[prefixOf(id)] = e.hash(b)
	if err := e.derived(b.Origin.ParentID); err != nil {
		return err
	}
	if _, known := e.o.Have.contents[prefixOf(id)]; known {
		e.report.Left++
		return e.commit(entryLeft, b.CreatedAt, description(&b.Block))
	}
	e.report.Blocks++
	e.setTime(b.CreatedAt)
	if b.Tree.Size == 0 && len(b.Body) <= content.InlineLimit {
		e.pending.Adopt(b)
		if _, bytes := e.pending.Size(); bytes > maxEntry/4 {
			return e.flush(entryHistory, &e.pending)
		}
		return nil
	}
	return e.large(b)
}

// derived writes the blocks that a block was derived from, oldest first.
func (e *exporter) derived(id content.ID) error {
	var line []content.ID
	for !id.IsZero() {
		if _, known := e.written[prefixOf(id)]; known || slices.Contains(line, id) {
			break
		}
		blocks, err := e.from.Blocks(e.ctx, []content.ID{id})
		if errors.Is(err, backend.ErrErased) || errors.Is(err, backend.ErrNotFound) {
			break // origins may name content that is gone
		}
		if err != nil {
			return err
		}
		line, id = append(line, id), blocks[0].Origin.ParentID
	}
	for _, id := range slices.Backward(line) {
		if err := e.content(id); err != nil {
			return err
		}
	}
	return nil
}

// description returns a block without its body.
func description(b *content.Block) *structure.Block {
	d := structure.Described(*b)
	if d.Size == 0 && d.ID != content.Sum(nil) {
		d.Size = 1 // unknown
	}
	return d
}

func (e *exporter) erased(b *structure.Block) error {
	e.written[prefixOf(b.ID)] = e.hash(b)
	e.report.Erased++
	return e.commit(entryErased, b.CreatedAt, description(&b.Block))
}

// large checks a body and writes it in chunks. The body is split again, so that the chunks depend only on the body.
func (e *exporter) large(b *structure.Block) error {
	var body io.Reader = bytes.NewReader(b.Body)
	if b.Tree.Size != 0 {
		body = content.VerifyReader(content.OpenTree(e.ctx, b.Tree, e.from.Chunks), b.ID)
	}
	if err := e.commit(entryBody, b.CreatedAt, description(&b.Block)); err != nil {
		return err
	}
	var chunks write.Batch
	_, root, err := content.Cut(e.ctx, body, func(key content.Key, chunk []byte) error {
		p := prefixOf(content.ID(key))
		if _, known := e.written[p]; known {
			return nil
		}
		e.written[p] = 0
		if _, known := e.o.Have.chunks[p]; known {
			e.report.Left++
			return e.out.entry(entryLeftKey, key[:])
		}
		e.report.Chunks++
		chunks.Chunk(key, bytes.Clone(chunk))
		if full(&chunks) {
			return e.flush(entryChunks, &chunks)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("block %v: %w", b.ID, err)
	}
	if err := e.flush(entryChunks, &chunks); err != nil {
		return err
	}
	whole := structure.Described(b.Block)
	whole.Tree = root
	e.pending.Adopt(whole)
	return nil
}
