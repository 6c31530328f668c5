package lineage

import (
	"context"
	"errors"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Where yields every usage of a content block, those of its own commit first.
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
			if u.Index >= len(entries) || entries[u.Index].Content != id {
				continue // another content whose id begins alike
			}
			if !yield(entries[u.Index], nil) {
				return
			}
		}
	}
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

// Usage counts what histories hold, however many of them share it.
type Usage struct {
	Spans, Entries uint64
	Bytes          uint64
	// ByModel counts entries by the model that made them, and ByUser by the user that they
	// belong to, as Store.Author tells both.
	ByModel, ByUser map[string]Amount
}

// Amount is a number of entries and the size of their bodies.
type Amount struct{ Entries, Bytes uint64 }

// CountUsage counts what the given contexts' histories hold, each span once
// although several share it. They must be of this store. Where visit is not nil it is
// shown each entry, to count what only the caller can: tokens in its metadata, say.
// Where contexts of a thread have different models in force, each answer that states none
// costs a look at its commit.
func (s *Store) CountUsage(ctx context.Context, contexts []*Context, visit func(*Entry)) (Usage, error) {
	for _, c := range contexts {
		if err := s.sameStore(c); err != nil {
			return Usage{}, err
		}
	}
	usage := Usage{ByModel: make(map[string]Amount), ByUser: make(map[string]Amount)}
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
	said := newAuthorship(ctx, s, snapshot)
	for _, run := range order {
		tip := SpanRef{Run: run, Seq: longest[run]}
		for e, err := range s.History(ctx, tip, Window{Last: tip.Seq}) {
			if err != nil {
				return Usage{}, err
			}
			origin, err := said.origin(e)
			if err != nil {
				return Usage{}, err
			}
			usage.add(e, origin)
			if visit != nil {
				visit(e)
			}
		}
	}
	return usage, nil
}

func (u *Usage) add(e *Entry, origin Origin) {
	if e.Index == 0 {
		u.Spans++
	}
	u.Entries++
	u.Bytes += uint64(e.Size)
	for _, by := range []struct {
		in  map[string]Amount
		key string
	}{{u.ByModel, origin.ModelID}, {u.ByUser, origin.UserID}} {
		if by.key != "" {
			is := by.in[by.key]
			is.Entries++
			is.Bytes += uint64(e.Size)
			by.in[by.key] = is
		}
	}
}
