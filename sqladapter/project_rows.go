package sqladapter

import (
	"context"
	"errors"
	"io"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

func isErased(b *structure.Block) bool { return b.Body == nil && b.Tree.Size == 0 }

// refText returns the id of a span, null for the zero ref.
func refText(at structure.SpanRef) any {
	if at.IsZero() {
		return nil
	}
	return at.String()
}

func idText[K any](id structure.ID[K]) any {
	if id.IsZero() {
		return nil
	}
	return id.String()
}

func hashText(id content.ID) any {
	if id.IsZero() {
		return nil
	}
	return id.String()
}

// addSpan adds a span to the batch, with its usages and their content.
func (w *projection) addSpan(ctx context.Context, s *backend.Step, parent structure.SpanRef) error {
	b, at := &w.batch, s.Span.Ref
	id := at.String()
	if set := s.Span.Set; !set.IsZero() {
		if err := w.addSet(ctx, set); err != nil {
			return err
		}
	}
	b.add(tables.Spans, id, refText(parent), idText(s.Span.Set), at.Run.String(), int64(at.Seq), int64(s.Position))
	for i := range s.Span.Usages {
		u, block := &s.Span.Usages[i], s.Blocks[i]
		for _, named := range u.Named(nil) {
			if err := w.addContent(ctx, *named); err != nil {
				return err
			}
		}
		b.add(tables.Usages, w.usageRow(u, block, structure.UsageID{Span: at, Index: i})...)
	}
	b.bytes += 400 * (1 + len(s.Span.Usages))
	return nil
}

// addContent adds content to the batch as first recorded.
func (w *projection) addContent(ctx context.Context, id content.ID) error {
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
	w.batch.addBlock(blocks[0], clean(blocks[0].Type), body)
	return nil
}

func (w *projection) cleanOrigin(o content.Origin) content.Origin {
	o.UserID, o.ModelID, o.SourceID = clean(o.UserID), clean(o.ModelID), clean(o.SourceID)
	return o
}

// stored returns the bytes of content, nil if it was erased, which the database remembers.
func (w *projection) stored(ctx context.Context, id content.ID) (body []byte, err error) {
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
func (w *projection) body(ctx context.Context, b *structure.Block) ([]byte, error) {
	if b.Size > mostBody || isErased(b) {
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
		return nil, nil // erased meanwhile
	}
	return nil, err
}

func (w *projection) addSet(ctx context.Context, id structure.SpanSetID) error {
	b, key := &w.batch, id.String()
	if b.missing[tables.Sets][key] != nil {
		return nil
	}
	set, err := w.state.SpanSet(ctx, id)
	if err != nil {
		return err
	}
	b.need(tables.Sets, key, refText(set.Parent), int64(set.Count), set.CreatedAt.UnixMilli())
	return nil
}

// put adds rows that the scope should have. With an owner, see batch.want, they are all rows of it.
func (v *view) put(t *tables.Table, owner []any, rows ...[]any) {
	v.w.put(v.fresh, t, owner, rows...)
}

// put is want, unless nothing can be there.
func (w *projection) put(fresh bool, t *tables.Table, owner []any, rows ...[]any) {
	if !fresh && w.check == nil {
		w.batch.want(t, owner, rows...)
		return
	}
	for _, row := range rows {
		w.batch.add(t, row...)
	}
}

// writeNames writes the branches and checkpoints of a chat.
func (v *view) writeNames(ctx context.Context) error {
	db, owner := v.w.DB, []any{chat.IDOfThread(v.record)}
	var branches, checkpoints [][]any
	for record, err := range v.w.state.Branches(ctx, v.thread, "", "") {
		if err != nil {
			return err
		}
		b, err := v.reader.Branch(ctx, record)
		if err != nil {
			return err
		}
		b.Name = clean(b.Name)
		if err := db.checkID(chat.SubjectBranch, b.ID, b.Name); err != nil {
			return err
		}
		branches = append(branches, branchRow(&b))
	}
	for record, err := range v.w.state.Checkpoints(ctx, v.thread, "") {
		if err != nil {
			return err
		}
		k, err := v.reader.Checkpoint(ctx, record)
		if err != nil {
			return err
		}
		k.Name = clean(k.Name)
		if err := db.checkID(chat.SubjectCheckpoint, k.ID, k.Name); err != nil {
			return err
		}
		checkpoints = append(checkpoints, checkpointRow(&k))
	}
	v.put(tables.Branches, owner, branches...)
	v.put(tables.Checkpoints, owner, checkpoints...)
	return nil
}

// exec returns a step that runs a statement.
func exec(s Statement, args ...any) step {
	return func(ctx context.Context, c *Conn) error {
		_, err := c.Exec(ctx, s, args...)
		return err
	}
}
