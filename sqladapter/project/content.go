package project

import (
	"context"
	"errors"
	"io"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// addSpan adds a span to the batch, with its usages and their content.
func (w *applier) addSpan(ctx context.Context, s *backend.Step, parent structure.SpanRef) error {
	b, at := &w.batch, s.Span.Ref
	id := at.String()
	if set := s.Span.Set; !set.IsZero() {
		if err := w.addSet(ctx, set); err != nil {
			return err
		}
	}
	b.add(tables.Spans, id, projected.RefText(parent), projected.IDText(s.Span.Set), at.Run.String(), int64(at.Seq), int64(s.Position))
	for i := range s.Span.Usages {
		u, block := &s.Span.Usages[i], s.Blocks[i]
		for _, named := range u.Named(nil) {
			if err := w.addContent(ctx, *named); err != nil {
				return err
			}
		}
		origin := cleanOrigin(u.OriginWith(block.Origin))
		if err := chatrows.CheckUser(w.DB, origin.UserID); err != nil {
			return refuse(err)
		}
		if origin.UserID != "" {
			b.need(tables.Users, origin.UserID)
		}
		b.add(tables.Usages, projected.UsageRow(u, block.Type, origin, structure.UsageID{Span: at, Index: i})...)
	}
	b.bytes += 400 * (1 + len(s.Span.Usages))
	return nil
}

// addContent adds content to the batch as it was first recorded.
func (w *applier) addContent(ctx context.Context, id content.ID) error {
	if w.batch.hasBlock(id) {
		return nil
	}
	blocks, err := w.state.Blocks(ctx, []content.ID{id})
	if errors.Is(err, lineage.ErrErased) {
		w.batch.addBare(id, true)
		return nil
	}
	if err != nil {
		return err
	}
	body, err := w.body(ctx, blocks[0])
	if err != nil {
		return err
	}
	w.batch.addBlock(blocks[0], projected.Clean(blocks[0].Type), body)
	return nil
}

// cleanOrigin returns an origin with texts that a database can store.
func cleanOrigin(o content.Origin) content.Origin {
	o.UserID, o.ModelID, o.SourceID = projected.Clean(o.UserID), projected.Clean(o.ModelID), projected.Clean(o.SourceID)
	return o
}

// stored returns the bytes of content. If it was erased, stored returns nil, and the database records that.
func (w *applier) stored(ctx context.Context, id content.ID) (body []byte, err error) {
	blocks, err := w.state.Blocks(ctx, []content.ID{id})
	if err == nil {
		body, err = w.body(ctx, blocks[0])
	}
	if errors.Is(err, lineage.ErrErased) || errors.Is(err, lineage.ErrNotFound) {
		w.batch.need(tables.Erased, id.String())
		err = nil
	}
	return body, err
}

// body returns a block's body, nil if it was erased or is too large.
func (w *applier) body(ctx context.Context, b *structure.Block) ([]byte, error) {
	if b.Size > projected.MaxBody || projected.IsErased(b) {
		return nil, nil
	}
	if b.Tree.Size == 0 {
		return b.Body, nil
	}
	body, err := w.Store.Body(ctx, b.ID)
	if err == nil {
		var all []byte
		if all, err = io.ReadAll(body); err == nil {
			return all, nil
		}
	}
	if errors.Is(err, lineage.ErrErased) {
		return nil, nil // erased in the meantime
	}
	return nil, err
}

// addSet adds a span set to the batch.
func (w *applier) addSet(ctx context.Context, id structure.SpanSetID) error {
	b, key := &w.batch, id.String()
	if b.missing[tables.Sets][key] != nil {
		return nil
	}
	set, err := w.state.SpanSet(ctx, id)
	if err != nil {
		return err
	}
	b.need(tables.Sets, key, projected.RefText(set.Parent), int64(set.Count), set.CreatedAt.UnixMilli())
	return nil
}
