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
		b, err := s.Block(ctx, id)
		if len(chain) > 0 && (isNotFound(err) || errors.Is(err, ErrErased)) {
			return append(chain, content.Block{ID: id}), nil
		}
		if err != nil {
			return nil, err
		}
		chain = append(chain, b)
		id = b.Origin.ParentID
	}
	return chain, nil
}

// Entries yields what the histories of contexts of this store hold, each entry once though
// several histories share it: to count tokens, bytes, users or models, say. The origin of each has
// the user and the model that it implies, as Store.Author tells. Where contexts of a thread have
// different models in force, each answer that states none costs a look at its commit.
func (s *Store) Entries(ctx context.Context, contexts ...*Context) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		tips, err := s.longest(ctx, contexts)
		if err != nil {
			yield(nil, err)
			return
		}
		said := newAuthorship(ctx, s, s.engine)
		for _, tip := range tips {
			for e, err := range s.History(ctx, tip, Window{Last: tip.Seq}) {
				if err == nil {
					e.Origin, err = said.origin(e)
				}
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// longest returns, of each run that histories of contexts go through, the last span that one
// of them has. Every history begins at the start of its runs, so that the longest stretch of a
// run covers all others.
func (s *Store) longest(ctx context.Context, contexts []*Context) ([]SpanRef, error) {
	return backend.AtOnce(ctx, s.engine, func(snapshot backend.Snapshot) ([]SpanRef, error) { return s.longestIn(ctx, snapshot, contexts) })
}

func (s *Store) longestIn(ctx context.Context, snapshot backend.Reader, contexts []*Context) ([]SpanRef, error) {
	runs := backend.Runs(ctx, snapshot)
	var tips []SpanRef
	place := make(map[structure.RunID]int) // in tips
	for _, c := range contexts {
		if err := s.sameStore(c); err != nil {
			return nil, err
		}
		state, err := snapshot.Context(ctx, c.id)
		if err != nil {
			return nil, err
		}
		for at := state.Tip; !at.IsZero(); {
			i, seen := place[at.Run]
			if seen && at.Seq <= tips[i].Seq {
				break // what lies behind was found with the longer stretch
			}
			if seen {
				tips[i] = at
			} else {
				place[at.Run] = len(tips)
				tips = append(tips, at)
			}
			run, err := runs(at.Run)
			if err != nil {
				return nil, err
			}
			at = run.Parent
		}
	}
	return tips, nil
}
