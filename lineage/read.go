package lineage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Entries yields a window of the context's history as of the start of reading, oldest first. The cost depends only on
// the size of the window.
func (c *Context) Entries(ctx context.Context, w Window) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		tip, err := c.Tip(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		c.store.History(ctx, tip, w)(yield)
	}
}

// All returns the whole history.
func (c *Context) All(ctx context.Context) ([]*Entry, error) { return c.collect(ctx, Window{}) }

// Last returns the entries of the last n spans.
func (c *Context) Last(ctx context.Context, n uint64) ([]*Entry, error) {
	if n == 0 {
		return nil, nil
	}
	return c.collect(ctx, Window{Last: n})
}

func (c *Context) collect(ctx context.Context, w Window) ([]*Entry, error) {
	tip, err := c.Tip(ctx)
	if err != nil {
		return nil, err
	}
	return c.store.collect(ctx, tip, w)
}

// Len returns the number of spans of the history.
func (c *Context) Len(ctx context.Context) (uint64, error) {
	tip, err := c.Tip(ctx)
	if err != nil {
		return 0, err
	}
	return c.store.Position(ctx, tip)
}

// Digest returns the digest of the context's history. Digests of two contexts, in any stores, are
// equal if and only if the histories have equal content.
func (c *Context) Digest(ctx context.Context) (structure.Digest, error) {
	tip, err := c.Tip(ctx)
	if err != nil {
		return structure.Digest{}, err
	}
	return c.store.engine.Digest(ctx, tip)
}

// History yields a window of the history that ends at a span, oldest first.
func (s *Store) History(ctx context.Context, tip SpanRef, w Window) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		if tip.IsZero() {
			return
		}
		entries := entryReader{from: s.engine}
		distant := backend.IsDistant(s.engine)
		var page []*backend.Step
		show := func() (more bool) {
			if distant {
				if err := entries.reader().Ahead(ctx, page); err != nil {
					yield(nil, err)
					return false
				}
			}
			for _, step := range page {
				for i := 0; i < len(step.Span.Usages); i = form.End(step.Span.Usages, i) {
					e, err := entries.entry(ctx, step, i)
					if !yield(e, err) || err != nil {
						return false
					}
				}
			}
			page = page[:0]
			return true
		}
		size := 1
		for step, err := range s.engine.Path(ctx, tip, w, backend.PathOptions{Bodies: true, Passing: !distant}) {
			if err != nil {
				if show() {
					yield(nil, err)
				}
				return
			}
			if page = append(page, step); len(page) < size {
				continue
			}
			if !show() {
				return
			}
			if distant { // pages grow, so that little is read for a caller who needs only the start
				size = min(2*size, maxEntryBatch)
			}
		}
		show()
	}
}

// Span returns the entries of one span.
func (s *Store) Span(ctx context.Context, ref SpanRef) ([]*Entry, error) {
	if ref.IsZero() {
		return nil, subjectError("span", ref.String(), ErrNotFound, "the empty position")
	}
	var entries []*Entry
	for e, err := range s.History(ctx, ref, Window{Last: 1}) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Spans returns the entries of spans, in their order. Where reads are round trips, it takes a few for all of them, and the entries
// have no position.
func (s *Store) Spans(ctx context.Context, refs []SpanRef) ([][]*Entry, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	return backend.AtOnce(ctx, s.engine, func(state backend.Snapshot) ([][]*Entry, error) {
		steps, err := backend.Steps(ctx, state, refs)
		if err != nil {
			return nil, err
		}
		entries := entryReader{from: state}
		if err := entries.reader().Ahead(ctx, steps); err != nil {
			return nil, err
		}
		all := make([][]*Entry, len(steps))
		for n, step := range steps {
			for i := 0; i < len(step.Span.Usages); i = form.End(step.Span.Usages, i) {
				e, err := entries.entry(ctx, step, i)
				if err != nil {
					return nil, err
				}
				all[n] = append(all[n], e)
			}
		}
		return all, nil
	})
}

// Position returns a span's position in its history, from 1; 0 for the zero ref.
func (s *Store) Position(ctx context.Context, ref SpanRef) (uint64, error) {
	return structure.Position(ref, s.runs(ctx))
}

// At returns the span at a position of the history that ends at tip.
func (s *Store) At(ctx context.Context, tip SpanRef, position uint64) (SpanRef, error) {
	ref, err := structure.At(tip, position, s.runs(ctx))
	if errors.Is(err, structure.ErrOutOfRange) {
		return SpanRef{}, subjectError("span", tip.String(), ErrNotFound, err.Error())
	}
	return ref, err
}

// entryReader creates entries. It allocates them in batches that grow with the history.
type entryReader struct {
	from     form.Blocks
	free     []Entry
	size     int
	messages *form.Reader // nil until a message has a form or large metadata
}

const maxEntryBatch = 32

func (r *entryReader) next() *Entry {
	if len(r.free) == 0 {
		r.size = min(2*r.size+1, maxEntryBatch)
		r.free = make([]Entry, r.size)
	}
	e := &r.free[0]
	r.free = r.free[1:]
	return e
}

// entryWith creates the entry of a step that the usage with an index belongs to, nil if there is none.
func (r *entryReader) entryWith(ctx context.Context, step *backend.Step, index int) (*Entry, error) {
	for i := 0; i < len(step.Span.Usages); {
		end := form.End(step.Span.Usages, i)
		if index < end {
			return r.entry(ctx, step, i)
		}
		i = end
	}
	return nil, nil
}

// entry creates the entry that begins with usage i of a step. It retains only bodies and metadata of the step.
func (r *entryReader) entry(ctx context.Context, step *backend.Step, i int) (*Entry, error) {
	e := r.next()
	u, b := &step.Span.Usages[i], step.Blocks[i]
	e.Position, e.Span, e.Index, e.Commit = step.Position, step.Span.Ref, i, step.Commit
	e.Kind, e.Role, e.Name = u.Kind, u.Role, u.Name
	e.Document, e.Revision, e.Filename = u.Document, u.Revision, u.Filename
	e.Content, e.Type, e.SourceID, e.Metadata, e.MetadataContent = u.Content, u.Type, u.SourceID, u.Metadata, u.MetadataContent
	e.CreatedAt, e.Set = u.CreatedAt, step.Span.Set
	e.searchRole = form.SearchRole(step.Span.Usages, i)
	e.Size, e.Body, e.Erased = b.Size, b.Body, b.Body == nil && b.Tree.Size == 0
	if e.Name == "" {
		e.Name = u.Role
	}
	if e.Type == "" {
		e.Type = b.Type
	}
	e.Origin = u.OriginWith(b.Origin)
	if !u.MetadataContent.IsZero() {
		var err error
		if e.Metadata, err = r.reader().Metadata(ctx, u); err != nil {
			return nil, fmt.Errorf("span %v: metadata: %w", step.Span.Ref, err)
		}
	}
	switch {
	case u.Kind != structure.MessageUsage:
	case !form.IsPlain(step.Span.Usages, i):
		return e, r.fillMessage(ctx, e, step, i)
	case u.Opaque:
		e.parts = parts(step.Span.Usages[i : i+1])
	}
	return e, nil
}

func (r *entryReader) reader() *form.Reader {
	if r.messages == nil {
		r.messages = form.NewReader(r.from)
	}
	return r.messages
}

// fillMessage sets the pieces of a message that has several, or a form.
func (r *entryReader) fillMessage(ctx context.Context, e *Entry, step *backend.Step, i int) error {
	usages := step.Span.Usages[i:form.End(step.Span.Usages, i)]
	m, err := r.reader().Message(ctx, step, i)
	if err != nil {
		return fmt.Errorf("span %v: %w", step.Span.Ref, err)
	}
	e.message, e.parts = m, parts(usages)
	if !usages[0].Form.IsZero() {
		e.Type, e.Erased = content.TypeJSON, m.Lost()
	}
	e.Pieces = make([]Piece, len(m.Pieces))
	for k := range m.Pieces {
		p := &m.Pieces[k]
		e.Pieces[k] = Piece{Kind: p.Kind, Tool: p.Name, Content: p.Content, Type: p.Type, Size: p.Size, Body: p.Body, Erased: p.Erased}
		e.Erased = e.Erased || p.Erased
	}
	if e.Body, e.Size = m.Inline(), m.Size(); e.Body != nil {
		e.Size = int64(len(e.Body))
	}
	return nil
}

// parts returns a deep copy of usages.
func parts(usages []structure.Usage) []structure.Usage {
	own := slices.Clone(usages)
	for i := range own {
		own[i].CloneBytes()
	}
	return own
}

func (s *Store) collect(ctx context.Context, tip SpanRef, w Window) ([]*Entry, error) {
	var entries []*Entry
	for e, err := range s.History(ctx, tip, w) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Tip returns the span that the context points to; the zero ref while it is empty.
func (c *Context) Tip(ctx context.Context) (SpanRef, error) {
	state, err := c.store.engine.Context(ctx, c.id)
	if err != nil {
		return SpanRef{}, err
	}
	return state.Tip, nil
}
