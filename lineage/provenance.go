package lineage

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// Where yields every entry that a content block is in, those of its own commit first. A
// message that says the same twice is yielded twice.
func (s *Store) Where(ctx context.Context, id ContentID) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for u, err := range s.engine.Where(ctx, id) {
			if err != nil {
				yield(nil, err)
				return
			}
			entries, err := s.Span(ctx, u.Span)
			if err != nil {
				yield(nil, err)
				return
			}
			e := entryAt(entries, u.Index)
			if e == nil || !e.has(id) {
				continue // another content whose id begins alike
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// entryAt returns the entry of a span that a usage belongs to, nil if there is none.
func entryAt(entries []*Entry, index int) *Entry {
	for i := len(entries) - 1; i >= 0; i-- {
		if e := entries[i]; e.Index <= index && index < e.Index+max(len(e.parts), 1) {
			return e
		}
	}
	return nil
}

// has reports whether content is in the entry.
func (e *Entry) has(id ContentID) bool {
	return e.Content == id || !id.IsZero() && e.MetadataContent == id || slices.ContainsFunc(e.parts, func(u structure.Usage) bool { return u.Content == id })
}

// Provenance returns the chain of blocks that a content block was derived from:
// the block itself first, then what it was derived or edited from, and so on. A
// link whose block is not in the store any more ends the chain with what is known
// of it: its id.
func (s *Store) Provenance(ctx context.Context, id ContentID) ([]content.Block, error) {
	var chain []content.Block
	seen := make(map[ContentID]bool)
	for !id.IsZero() && !seen[id] {
		seen[id] = true
		blocks, err := s.engine.Blocks(ctx, []ContentID{id})
		if len(chain) > 0 && (isNotFound(err) || errors.Is(err, ErrErased)) {
			return append(chain, content.Block{ID: id}), nil
		}
		if err != nil {
			return nil, err
		}
		chain = append(chain, blocks[0].Block)
		id = blocks[0].Origin.ParentID
	}
	return chain, nil
}
