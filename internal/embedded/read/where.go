package read

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Usage is a usage with its commit and its number among the usages of the commit.
type Usage struct {
	structure.UsageID
	Commit uint64
	Place  uint32
}

// Where implements backend.Reader. Usages in the block's own commit are read from the commit. The others are in a
// table, ordered by commit. If the block was erased and stored again, some of these are older.
func (v *View) Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error] {
	return func(yield func(structure.UsageID, error) bool) {
		fail := func(err error) { yield(structure.UsageID{}, err) }
		own, err := v.OwnUsages(v.Index, id, nil)
		if err == nil && v.Commits.Collecting() {
			own, err = v.present(ctx, own)
		}
		if err != nil {
			fail(err)
			return
		}
		yieldOwn := func(until uint64) bool {
			for ; len(own) > 0 && own[0].Commit < until; own = own[1:] {
				if ctx.Err() != nil {
					fail(context.Cause(ctx))
					return false
				}
				if !yield(own[0].UsageID, nil) {
					return false
				}
			}
			return true
		}
		prefix := keys.Of(keys.TableUsageOfContent, id[:keys.HashPrefix])
		for e, err := range v.Entries(ctx, prefix) {
			if err != nil {
				fail(err)
				return
			}
			if !yieldOwn(keys.ReadUint64(e.Key[len(prefix):])) {
				return
			}
			values := keys.ReadVarints(e.Value)
			u := structure.UsageID{Span: keys.ReadRef(&values), Index: int(values.Next())}
			if err := values.Err(); !yield(u, err) || err != nil {
				return
			}
		}
		yieldOwn(1<<64 - 1)
	}
}

// OwnUsages returns the usages of a block in its own commit, except those in hidden
// spans. A nil function hides none.
func (v *View) OwnUsages(state Getter, id content.ID, hidden func(structure.SpanRef) bool) (own []Usage, err error) {
	value, ok, err := state.Get(keys.Block(id))
	if err != nil || !ok {
		return nil, err
	}
	p, err := keys.ReadLocation(value)
	if err != nil {
		return nil, err
	}
	r := v.Commits.NewReader()
	frame, err := r.Frame(p.Frame)
	if err != nil {
		return nil, err
	}
	corrupt := func(err error) error {
		return &backend.CorruptError{File: r.Name(), Offset: p.Frame.Offset, What: err.Error()}
	}
	d, err := structure.NewDecoder(frame.Payload)
	if err != nil {
		return nil, corrupt(err)
	}
	for place := uint32(0); d.More(); {
		_, record, err := d.Next()
		if err != nil {
			return nil, corrupt(err)
		}
		s, ok := record.(*structure.Span)
		if !ok || hidden != nil && hidden(s.Ref) {
			continue
		}
		for i := range s.Usages {
			if s.Usages[i].Content == id || s.Usages[i].MetadataContent == id {
				own = append(own, Usage{structure.UsageID{Span: s.Ref, Index: i}, frame.Number, place})
			}
			place++
		}
	}
	return own, nil
}

// present drops usages in spans that the index no longer has. A collection has not deleted them from the journal yet.
func (v *View) present(ctx context.Context, usages []Usage) (left []Usage, err error) {
	if v.Ahead != nil {
		var need Need
		for _, u := range usages {
			need.Keys = append(need.Keys, keys.Span(u.Span))
		}
		if err := v.Ahead.Prefetch(ctx, need); err != nil {
			return nil, err
		}
	}
	for _, u := range usages {
		_, ok, err := v.Index.Get(keys.Span(u.Span))
		if err != nil {
			return nil, err
		}
		if ok {
			left = append(left, u)
		}
	}
	return left, nil
}
