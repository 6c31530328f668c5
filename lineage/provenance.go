package lineage

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// firstUses and mostUses limit the uses that are read at once: the number doubles from page to page.
const (
	firstUses = 16
	mostUses  = 128
)

// Where yields the entries that use a content block. Those of the commit that stored it first come first. A message
// with the block in two pieces is yielded twice.
func (s *Store) Where(ctx context.Context, id ContentID) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		entries := entryReader{from: s.engine}
		var page []structure.UsageID
		size := firstUses
		next := func() (goOn bool) {
			goOn = s.yieldUses(ctx, &entries, id, page, yield)
			page, size = page[:0], min(2*size, mostUses)
			return goOn
		}
		for u, err := range s.engine.Where(ctx, id) {
			if err != nil {
				if next() {
					yield(nil, err)
				}
				return
			}
			if page = append(page, u); len(page) == size && !next() {
				return
			}
		}
		next()
	}
}

// yieldUses yields the entries of uses of a content, which are read at once, and reports whether more are wanted.
func (s *Store) yieldUses(ctx context.Context, entries *entryReader, id ContentID, uses []structure.UsageID, yield func(*Entry, error) bool) bool {
	if len(uses) == 0 {
		return true
	}
	refs := make([]SpanRef, len(uses))
	for i, u := range uses {
		refs[i] = u.Span
	}
	steps, err := backend.AtOnce(ctx, s.engine, func(state backend.Snapshot) ([]*backend.Step, error) { return backend.Steps(ctx, state, refs) })
	if err == nil {
		err = entries.reader().Ahead(ctx, steps)
	}
	if err != nil {
		yield(nil, err)
		return false
	}
	for i, step := range steps {
		e, err := entries.entryWith(ctx, step, uses[i].Index)
		if err != nil {
			yield(nil, err)
			return false
		}
		if e == nil || !e.has(id) {
			continue // other content has an id with the same prefix
		}
		if !yield(e, nil) {
			return false
		}
	}
	return true
}

// entryAt returns the entry of a span that the usage with an index belongs to, nil if there is
// none.
func entryAt(entries []*Entry, index int) *Entry {
	for i := len(entries) - 1; i >= 0; i-- {
		if e := entries[i]; e.Index <= index && index < e.Index+max(len(e.parts), 1) {
			return e
		}
	}
	return nil
}

// has reports whether the entry uses the content.
func (e *Entry) has(id ContentID) bool {
	return e.Content == id || !id.IsZero() && e.MetadataContent == id || slices.ContainsFunc(e.parts, func(u structure.Usage) bool { return u.Content == id })
}

// maxUsages limits the usages of a content that are searched for what it was derived from.
const maxUsages = 1000

// Provenance returns the derivation chain of a content block: the block itself, then the block that it was derived or
// edited from, and so on. If a block was first stored without a parent, its parent is that of its oldest usage with
// one, among the first 1,000. If the store no longer has a block, the chain ends with its id. Entry.Origin has the
// origin of one message.
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
		if id = blocks[0].Origin.ParentID; id.IsZero() {
			if id, err = s.parentOfUsages(ctx, blocks[0].ID); err != nil {
				return nil, err
			}
		}
	}
	return chain, nil
}

// parentOfUsages returns the parent stated by the oldest usage of a content that states one, zero if none does.
func (s *Store) parentOfUsages(ctx context.Context, id ContentID) (ContentID, error) {
	n := 0
	for e, err := range s.Where(ctx, id) {
		if err != nil {
			return ContentID{}, err
		}
		if e.Content == id && !e.Origin.ParentID.IsZero() {
			return e.Origin.ParentID, nil
		}
		if n++; n == maxUsages {
			break
		}
	}
	return ContentID{}, nil
}
