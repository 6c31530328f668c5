package lineage

import (
	"context"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/structure"
)

// Merge copies to the context what another context of the store has added since the two diverged, except what was
// merged before, and returns the new spans. Copies have no source ids, because source ids are unique in a thread. A
// document revision whose number has other content in the context gets the next number. MoveTo, in contrast, adopts
// the whole history of the other context.
func (c *Context) Merge(ctx context.Context, source *Context) ([]SpanRef, error) {
	if err := c.store.sameStore(source); err != nil {
		return nil, err
	}
	if source.id == c.id {
		return nil, subjectError("context", c.id.String(), ErrInvalid, "a context cannot be merged into itself")
	}
	defer c.store.writer.Lock(c.id).Unlock()
	var added []SpanRef
	err := c.store.change(ctx, func(b *write.Batch, t write.Try) error {
		target, err := c.store.engine.Context(ctx, c.id)
		if err != nil {
			return err
		}
		from, err := c.store.engine.Context(ctx, source.id)
		if err != nil {
			return err
		}
		common, err := structure.CommonAncestor(target.Tip, from.Tip, c.store.runs(ctx))
		if err != nil {
			return err
		}
		added = nil
		usages, err := c.store.unmerged(ctx, target.Tip, from.Tip, common)
		if err != nil || len(usages) == 0 {
			return err
		}
		home, own, err := c.store.home(ctx, &target.Context)
		if err != nil {
			return err
		}
		added = appendSteps(b, &target.Context, home, nil, usages, t.Fresh || !own)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return added, nil
}

// mergedFrom is the prefix of the source id of merged usages. After it comes the original place, also after repeated
// merges.
const mergedFrom = "lineage:span/"

// MergedFrom returns the span that an entry is a copy of, if a merge made it. The span may be gone.
func (e *Entry) MergedFrom() (SpanRef, bool) {
	place, ok := strings.CutPrefix(e.Origin.SourceID, mergedFrom)
	if !ok {
		return SpanRef{}, false
	}
	span, _, _ := strings.Cut(place, ".")
	ref, err := structure.ParseSpanRef(span)
	return ref, err == nil
}

// sourcePlace returns the place at which an entry was originally added.
func sourcePlace(e *Entry) string {
	if place, ok := strings.CutPrefix(e.Origin.SourceID, mergedFrom); ok {
		return place
	}
	return structure.UsageID{Span: e.Span, Index: e.Index}.String()
}

// unmerged returns the usages, by span, that the source has after the common span and the target lacks.
func (s *Store) unmerged(ctx context.Context, target, source, common SpanRef) ([][]structure.Usage, error) {
	after, err := s.Position(ctx, common)
	if err != nil {
		return nil, err
	}
	has := make(map[string]bool)
	for e, err := range s.History(ctx, target, Window{From: after + 1}) {
		if err != nil {
			return nil, err
		}
		has[sourcePlace(e)] = true
	}
	var usages [][]structure.Usage
	var last SpanRef
	var on *documentIndex // of the target, loaded for the first document
	for e, err := range s.History(ctx, source, Window{From: after + 1}) {
		if err != nil {
			return nil, err
		}
		place := sourcePlace(e)
		if has[place] {
			continue
		}
		item := e.Item()
		item.Origin.SourceID = mergedFrom + place
		if item.Kind == Document {
			if on == nil {
				on = new(documentIndex)
				if err := on.advance(ctx, s, target); err != nil {
					return nil, err
				}
			}
			item.Revision = on.numbered(item.Document, item.Revision, item.Content)
		}
		if e.Span != last {
			usages, last = append(usages, nil), e.Span
		}
		n := len(usages) - 1
		usages[n] = appendUsages(usages[n], &item, new(content.BlockOrigin))
	}
	return usages, nil
}
