package sqladapter

import (
	"context"
	"errors"
	"io"
	"slices"

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
	w.batch.addBlock(w.cleanBlock(blocks[0]), body)
	return nil
}

// cleanBlock returns a block with texts that the database can store.
func (w *projection) cleanBlock(b *structure.Block) *structure.Block {
	mediaType := w.DB.clean(b.Type)
	if mediaType == b.Type {
		return b
	}
	is := b.Block
	is.Type = mediaType
	return structure.Described(is)
}

func (w *projection) cleanOrigin(o content.Origin) content.Origin {
	o.UserID, o.ModelID, o.SourceID = w.DB.clean(o.UserID), w.DB.clean(o.ModelID), w.DB.clean(o.SourceID)
	return o
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

// contextRow returns the columns of a context except id and parent.
func (v *view) contextRow(ctx context.Context, c *backend.Context) ([]any, error) {
	var text, contentID any
	var embedding []byte
	last, err := v.w.latestSummary(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	if last != nil {
		contentID, embedding = last.Content.String(), last.Embedding
		if text, err = v.w.summaryText(ctx, last); err != nil {
			return nil, err
		}
	}
	db := v.w.DB
	override := func(s *string) any {
		if s == nil {
			return nil
		}
		return db.clean(*s)
	}
	return []any{
		refText(c.Tip), text, embedding, override(c.Overrides.SystemPrompt), override(c.Overrides.Model), c.CreatedAt.UnixMilli(),
		idText(c.Thread), v.chatID(), refText(c.Base), idText(c.Set), contentID,
		db.bytesText(c.Overrides.JSON), db.bytesText(c.Metadata),
	}, nil
}

// writeContexts writes the contexts that changed, and notes where they stand.
func (v *view) writeContexts(ctx context.Context) error {
	pins, err := v.pins(ctx)
	if err != nil {
		return err
	}
	placed := make(map[structure.ContextID]bool)
	for _, c := range v.written {
		pinID := contextPin(c.ID)
		v.writePin(pinID, c.Tip, pins[pinID])
		if v.w.ChatsOnly {
			continue
		}
		row, err := v.contextRow(ctx, &c)
		if err != nil {
			return err
		}
		var parent any
		switch {
		case v.w.check != nil:
			if parent, err = v.w.parentOf(ctx, c.Parent); err != nil {
				return err
			}
		case placed[c.Parent] && !pins[pinID]:
			parent = c.Parent.String()
		case !c.Parent.IsZero() || pins[pinID]:
			v.w.late = append(v.w.late, c.ID)
		}
		placed[c.ID] = true
		if v.fresh && v.w.check == nil {
			if err := v.linkChildren(ctx, &c); err != nil {
				return err
			}
		}
		b, id := &v.w.batch, c.ID.String()
		b.bytes += 500
		if !pins[pinID] {
			if err := v.w.addValues(ctx, contextOwner(c.ID)); err != nil {
				return err
			}
			if err := v.w.addSummaries(ctx, c.ID, true); err != nil {
				return err
			}
			b.add(tables.Contexts, append([]any{id, parent}, row...)...)
			continue
		}
		b.n++
		b.after = append(b.after, exec(sqlOf[tables.Contexts].update, append(row, id)...))
	}
	return nil
}

// linkChildren links the children of a context in other scopes to it. They lost their parent if
// their scope was written earlier.
func (v *view) linkChildren(ctx context.Context, c *backend.Context) error {
	for child, err := range v.w.state.Children(ctx, c.ID, structure.ContextID{}) {
		if err != nil {
			return err
		}
		if child.Thread != c.Thread || c.Thread.IsZero() {
			v.w.late = append(v.w.late, child.ID)
		}
	}
	return nil
}

// pins returns which of the contexts to write are in the database. For a scope that is written
// completely, it deletes the other pins.
func (v *view) pins(ctx context.Context) (map[string]bool, error) {
	pins := make(map[string]bool)
	if v.fresh {
		return pins, nil
	}
	var ids []string
	for _, c := range v.written {
		ids = append(ids, contextPin(c.ID))
	}
	found, err := lookup(ctx, v.w.DB, windowSQL.pins, ids, scanPin)
	if err != nil {
		return nil, err
	}
	for _, p := range found {
		pins[p.id] = true
	}
	if !v.full {
		return pins, nil
	}
	all, err := v.w.pinsIn(ctx, v.key)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if !pins[p.id] {
			v.w.batch.after = append(v.w.batch.after, exec(pruneSQL.removePin, p.id))
		}
	}
	return pins, nil
}

// writePin records the tip of a context.
func (v *view) writePin(id string, at structure.SpanRef, known bool) {
	b := &v.w.batch
	if !known {
		b.add(tables.Pins, id, v.key, idText(at.Run), int64(at.Seq))
		return
	}
	b.n++
	b.after = append(b.after, exec(sqlOf[tables.Pins].update, v.key, idText(at.Run), int64(at.Seq), id))
}

// writeNames writes the changed branches and checkpoints of a chat.
func (v *view) writeNames(ctx context.Context) error {
	branches, checkpoints, err := v.names(ctx)
	if err != nil {
		return err
	}
	oldBranches, oldCheckpoints, err := v.writtenNames(ctx)
	if err != nil {
		return err
	}
	rows, old := make([][]any, len(branches)), make(map[string][]any, len(oldBranches))
	for i := range branches {
		rows[i] = branchRow(&branches[i])
	}
	for _, is := range oldBranches {
		old[is.ID] = branchRow(&is)
	}
	v.replaceNames(tables.Branches, scopeSQL.removeBranch, rows, old)
	rows, old = make([][]any, len(checkpoints)), make(map[string][]any, len(oldCheckpoints))
	for i := range checkpoints {
		rows[i] = checkpointRow(&checkpoints[i])
	}
	for _, is := range oldCheckpoints {
		old[is.ID] = checkpointRow(&is)
	}
	v.replaceNames(tables.Checkpoints, scopeSQL.removeCheckpoint, rows, old)
	return nil
}

// replaceNames updates the rows of a table with names. old has the existing rows by id; the name is
// the third column.
func (v *view) replaceNames(t *tables.Table, remove Statement, rows [][]any, old map[string][]any) {
	const name = 2
	b := &v.w.batch
	for _, is := range rows {
		id := is[0].(string)
		was, known := old[id]
		delete(old, id)
		switch {
		case slices.Equal(was, is):
		case !known && v.fresh:
			b.add(t, is...)
		case known && was[name] == is[name]:
			b.after = append(b.after, exec(sqlOf[t].update, append(is[t.Fixed:len(is):len(is)], id)...))
		default:
			if known { // another row may have the name by now
				b.before = append(b.before, exec(remove, id))
			}
			b.after = append(b.after, func(ctx context.Context, c *Conn) error { return c.insert(ctx, sqlOf[t].insert, [][]any{is}) })
		}
	}
	b.n += len(rows)
	for id := range old {
		b.before = append(b.before, exec(remove, id))
	}
}

// exec returns a step that runs a statement.
func exec(s Statement, args ...any) step {
	return func(ctx context.Context, c *Conn) error {
		_, err := c.Exec(ctx, s, args...)
		return err
	}
}

// names returns the current branches and checkpoints of a chat.
func (v *view) names(ctx context.Context) (branches []chat.Branch, checkpoints []chat.Checkpoint, err error) {
	db := v.w.DB
	for record, err := range v.w.state.Branches(ctx, v.thread, "", "") {
		if err != nil {
			return nil, nil, err
		}
		b, err := v.reader.Branch(ctx, record)
		if err != nil {
			return nil, nil, err
		}
		b.Name = db.clean(b.Name)
		if err := db.checkID(chat.SubjectBranch, b.ID, b.Name); err != nil {
			return nil, nil, err
		}
		branches = append(branches, b)
	}
	for record, err := range v.w.state.Checkpoints(ctx, v.thread, "") {
		if err != nil {
			return nil, nil, err
		}
		k, err := v.reader.Checkpoint(ctx, record)
		if err != nil {
			return nil, nil, err
		}
		k.Name = db.clean(k.Name)
		if err := db.checkID(chat.SubjectCheckpoint, k.ID, k.Name); err != nil {
			return nil, nil, err
		}
		checkpoints = append(checkpoints, k)
	}
	return branches, checkpoints, nil
}

// writtenNames returns the branches and checkpoints of a chat in the database.
func (v *view) writtenNames(ctx context.Context) (branches []chat.Branch, checkpoints []chat.Checkpoint, err error) {
	if v.fresh {
		return nil, nil, nil
	}
	id := chat.IDOfThread(v.record)
	err = v.w.DB.Read(ctx, func(c *Conn) error {
		if branches, err = c.branches(ctx, id); err != nil {
			return err
		}
		checkpoints, err = collect(ctx, c, scanCheckpoint, checkpointSQL.ofChat, id)
		return err
	})
	return branches, checkpoints, err
}
