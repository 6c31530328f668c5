package sqladapter

import (
	"cmp"
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

// contextRow returns the row of a context.
func (v *view) contextRow(ctx context.Context, c *backend.Context) ([]any, error) {
	var text, contentID any
	var embedding []byte
	overrides, parent, err := v.w.overridesOf(ctx, c)
	if err != nil {
		return nil, err
	}
	last, err := v.w.latestSummary(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	if last != nil {
		contentID, embedding = last.Content.String(), last.Embedding
		body, err := v.w.stored(ctx, last.Content)
		if err != nil {
			return nil, err
		}
		text = bytesText(body)
	}
	return []any{
		c.ID.String(), parent, refText(c.Tip), text, embedding, cleanOptional(overrides.SystemPrompt), cleanOptional(overrides.Model), c.CreatedAt.UnixMilli(),
		idText(c.Thread), v.chatID(), refText(c.Base), idText(c.Set), contentID,
		bytesText(overrides.JSON), bytesText(c.Metadata),
	}, nil
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

// writeContexts writes the contexts that changed, and notes where they stand.
func (v *view) writeContexts(ctx context.Context) error {
	var pins, rows [][]any
	known, err := v.knownContexts(ctx)
	if err != nil {
		return err
	}
	for _, c := range v.written {
		pins = append(pins, []any{c.ID.String(), v.key, idText(c.Tip.Run), int64(c.Tip.Seq)})
		if v.w.ChatsOnly {
			continue
		}
		row, err := v.contextRow(ctx, &c)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		v.w.batch.bytes += 500
		if known[c.ID.String()] {
			continue
		}
		if err := v.w.addValues(ctx, contextOwner(c.ID), true); err != nil {
			return err
		}
		if err := v.w.addSummaries(ctx, c.ID, true); err != nil {
			return err
		}
		if err := v.linkChildren(ctx, &c); err != nil {
			return err
		}
	}
	v.put(tables.Contexts, nil, rows...)
	var owner []any
	if v.full { // the others are gone
		owner = []any{v.key}
	}
	v.w.put(v.w.empty, tables.Pins, owner, pins...) // even a new scope may have had some: see removeScope
	return nil
}

// knownContexts returns the contexts that the database has, of those to write.
func (v *view) knownContexts(ctx context.Context) (known map[string]bool, err error) {
	if v.fresh || v.w.ChatsOnly {
		return nil, nil
	}
	ids := make([]string, len(v.written))
	for i := range v.written {
		ids[i] = v.written[i].ID.String()
	}
	return read(ctx, v.w.DB, func(c *Conn) (map[string]bool, error) { return c.has(ctx, sqlOf[tables.Contexts].known, ids) })
}

// byAge is the order in which the contexts of a scope are written.
func byAge(a, b backend.Context) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.ID.Compare(b.ID))
}

// linkChildren links the children of a new context to it, except those that are written after it
// together with it.
func (v *view) linkChildren(ctx context.Context, c *backend.Context) error {
	for child, err := range v.w.state.Children(ctx, c.ID, structure.ContextID{}) {
		if err != nil {
			return err
		}
		if !v.fresh || child.Thread != c.Thread || c.Thread.IsZero() || byAge(child, *c) < 0 {
			v.w.batch.links = append(v.w.batch.links, [2]string{c.ID.String(), child.ID.String()})
		}
	}
	return nil
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
