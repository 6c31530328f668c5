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

// line writes the history that ends at a span, as far as it was not yet.
func (e *exporter) line(to structure.SpanRef) error {
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

// piece writes what was not yet written of a run up to a span.
func (e *exporter) piece(end structure.SpanRef) error {
	if _, busy := e.busy[end.Run]; busy {
		return fmt.Errorf("span %v follows itself: %w", end, backend.ErrCorrupt)
	}
	if _, waiting := e.waiting[end.Run]; waiting {
		// It was announced already: what that announced comes first.
		if err := e.flush(entryHistory, &e.history); err != nil {
			return err
		}
	}
	info, err := e.from.Run(e.ctx, end.Run)
	if err != nil {
		return err
	}
	p := piece{run: info.Run, base: info.Digest, from: e.runs[end.Run], last: end.Seq}
	if p.digest, err = e.from.Digest(e.ctx, end); err != nil {
		return err
	}
	known, err := e.known(end)
	if err != nil {
		return err
	}
	if known > p.from {
		p.from, p.left = known, true
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
	e.busy[end.Run] = struct{}{}
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

// known returns up to which place the other side has a run as it is here.
func (e *exporter) known(end structure.SpanRef) (uint64, error) {
	have, ok := e.o.Have.runs[end.Run]
	if !ok || have.last == 0 {
		return 0, nil
	}
	at := structure.SpanRef{Run: end.Run, Seq: have.last}
	d, err := e.from.Digest(e.ctx, at)
	if errors.Is(err, backend.ErrNotFound) {
		return 0, nil // it has gone on there
	}
	if err != nil || d != have.digest {
		return 0, err
	}
	return min(have.last, end.Seq), nil
}

func (e *exporter) span(step *backend.Step) error {
	s := step.Span
	if !s.Set.IsZero() {
		if err := e.spanSet(s.Set); err != nil {
			return err
		}
	}
	if full(&e.history) {
		if err := e.flush(entryHistory, &e.history); err != nil {
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
	e.timed(s.Usages[0].CreatedAt)
	s = e.own(step)
	for i := range s.Usages {
		if o := s.Usages[i].Origin; o != nil {
			if err := e.derived(o.ParentID); err != nil {
				return err
			}
		}
	}
	e.history.Adopt(s)
	e.waiting[s.Ref.Run] = struct{}{}
	if e.report.Spans++; e.o.Progress != nil && e.report.Spans%1024 == 0 {
		e.o.Progress(e.report.Spans)
	}
	return nil
}

// timed gives the history that is being put together a time near its first usage.
func (e *exporter) timed(at time.Time) {
	if empty(&e.history) && e.history.Time().IsZero() {
		e.history.Reset(at)
	}
}

func (e *exporter) spanSet(id structure.SpanSetID) error {
	if _, known := e.sets[id]; known {
		return nil
	}
	e.sets[id] = struct{}{}
	s, err := e.from.SpanSet(e.ctx, id)
	if err != nil {
		return err
	}
	if err := e.line(s.Parent); err != nil {
		return err
	}
	e.timed(s.CreatedAt)
	e.history.Adopt(s)
	return nil
}

// said is what a block says for usages that leave it to the block.
type said struct {
	mediaType string
	origin    content.BlockOrigin
}

// hash returns a number for what a block says.
func (e *exporter) hash(b *structure.Block) uint64 {
	return maphash.Comparable(e.seed, said{b.Type, b.Origin})
}

// own returns a span whose usages say what they leave to blocks that were written as
// something else: one that was erased and stored anew says something else since.
func (e *exporter) own(step *backend.Step) *structure.Span {
	s := step.Span
	for i, b := range step.Blocks {
		u := &s.Usages[i]
		if u.Type != "" && u.Origin != nil || b.Type == "" || e.sent[prefixOf(u.Content)] == e.hash(b) {
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

// content writes a block by its id, if the store has it.
func (e *exporter) content(id content.ID) error {
	if id.IsZero() {
		return nil
	}
	if _, known := e.sent[prefixOf(id)]; known {
		return nil
	}
	blocks, err := e.from.Blocks(e.ctx, []content.ID{id})
	switch {
	case errors.Is(err, backend.ErrErased):
		b, err := e.described(id)
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

// described returns what is left of a block that was erased, as a span that uses it
// tells. Of one that only summaries or values use the size is not known.
func (e *exporter) described(id content.ID) (*structure.Block, error) {
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

// used writes a block that something uses, and what it was derived from.
func (e *exporter) used(id content.ID, b *structure.Block) error {
	if _, known := e.sent[prefixOf(id)]; known {
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
	e.sent[prefixOf(id)] = e.hash(b)
	if err := e.derived(b.Origin.ParentID); err != nil {
		return err
	}
	if _, have := e.o.Have.contents[prefixOf(id)]; have {
		e.report.Left++
		return e.commit(entryLeft, b.CreatedAt, description(&b.Block))
	}
	e.report.Blocks++
	e.timed(b.CreatedAt)
	if b.Tree.Size == 0 && len(b.Body) <= content.InlineLimit {
		e.history.Adopt(b)
		if _, bytes := e.history.Size(); bytes > maxEntry/4 { // a span with that much content
			return e.flush(entryHistory, &e.history)
		}
		return nil
	}
	return e.large(b)
}

// derived writes the blocks that a block was derived from, oldest first.
func (e *exporter) derived(id content.ID) error {
	var line []content.ID
	for !id.IsZero() {
		if _, known := e.sent[prefixOf(id)]; known || slices.Contains(line, id) {
			break
		}
		blocks, err := e.from.Blocks(e.ctx, []content.ID{id})
		if errors.Is(err, backend.ErrErased) || errors.Is(err, backend.ErrNotFound) {
			break // nothing requires it
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

// description returns a block without its bytes. An empty one has none.
func description(b *content.Block) *structure.Block {
	d := structure.Described(*b)
	if d.Size == 0 && d.ID != content.Sum(nil) {
		d.Size = 1 // not known any more
	}
	return d
}

func (e *exporter) erased(b *structure.Block) error {
	e.sent[prefixOf(b.ID)] = e.hash(b)
	e.report.Erased++
	return e.commit(entryErased, b.CreatedAt, description(&b.Block))
}

// large writes the chunks of a body, checking it on the way. It is cut anew: what
// is written does not depend on who cut it first.
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
		if _, known := e.sent[p]; known {
			return nil
		}
		e.sent[p] = 0
		if _, have := e.o.Have.chunks[p]; have {
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
	e.history.Adopt(whole)
	return nil
}
