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
	return e.Content == id || slices.ContainsFunc(e.parts, func(u structure.Usage) bool { return u.Content == id })
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

// Author tells who added an entry to a history.
type Author struct {
	// Context is the context that it was added through; zero when that cannot be
	// told, as for a history that was imported.
	Context ContextID
	Origin  Origin
	Commit  uint64
}

// Author returns who added an entry: the context that stood at its span after the
// commit that brought it, and the origin of this usage.
func (s *Store) Author(ctx context.Context, e *Entry) (Author, error) {
	author := Author{Origin: e.Origin, Commit: e.Commit}
	for c, err := range s.engine.Feed(ctx, Cursor{Number: e.Commit - 1}) {
		if err != nil {
			return Author{}, err
		}
		if c.Number != e.Commit {
			break
		}
		author.Context = contextAdding(c, e.Span)
		break
	}
	return author, nil
}

// contextAdding returns the context whose tip a commit moved to the end of the
// stretch of its run that a span of it is in.
func contextAdding(c *structure.Commit, span SpanRef) ContextID {
	for _, r := range c.Records {
		if t, ok := r.(*structure.Tip); ok && t.Span.Run == span.Run && t.Span.Seq >= span.Seq {
			return t.Context
		}
	}
	return ContextID{}
}

// Usage counts what histories hold, however many of them share it.
type Usage struct {
	Spans, Entries uint64
	Bytes          uint64
	// ByModel counts entries and bytes by the model that made them.
	ByModel map[string]ModelUsage
}

// ModelUsage is what one model made.
type ModelUsage struct{ Entries, Bytes uint64 }

// CountUsage counts what the given contexts' histories hold, each span once
// although several share it. They must be of this store. Where visit is not nil it is
// shown each entry, to count what only the caller can: tokens in its metadata, say.
func (s *Store) CountUsage(ctx context.Context, contexts []*Context, visit func(*Entry)) (Usage, error) {
	for _, c := range contexts {
		if err := s.sameStore(c); err != nil {
			return Usage{}, err
		}
	}
	usage := Usage{ByModel: make(map[string]ModelUsage)}
	snapshot, err := s.engine.Snapshot(ctx)
	if err != nil {
		return Usage{}, err
	}
	defer snapshot.Close()
	runs := backend.Runs(ctx, snapshot)
	// Every history begins at the start of its runs, so of each run the longest
	// stretch covers all others.
	longest := make(map[structure.RunID]uint64)
	var order []structure.RunID
	for _, c := range contexts {
		state, err := snapshot.Context(ctx, c.id)
		if err != nil {
			return Usage{}, err
		}
		for at := state.Tip; !at.IsZero(); {
			last, seen := longest[at.Run]
			if !seen {
				order = append(order, at.Run)
			}
			if at.Seq <= last {
				break // what lies behind was counted with the longer stretch
			}
			longest[at.Run] = at.Seq
			run, err := runs(at.Run)
			if err != nil {
				return Usage{}, err
			}
			at = run.Parent
		}
	}
	for _, run := range order {
		tip := SpanRef{Run: run, Seq: longest[run]}
		for e, err := range s.History(ctx, tip, Window{Last: tip.Seq}) {
			if err != nil {
				return Usage{}, err
			}
			usage.add(e)
			if visit != nil {
				visit(e)
			}
		}
	}
	return usage, nil
}

func (u *Usage) add(e *Entry) {
	if e.Index == 0 {
		u.Spans++
	}
	u.Entries++
	u.Bytes += uint64(e.Size)
	if e.Origin.ModelID != "" {
		m := u.ByModel[e.Origin.ModelID]
		m.Entries++
		m.Bytes += uint64(e.Size)
		u.ByModel[e.Origin.ModelID] = m
	}
}
