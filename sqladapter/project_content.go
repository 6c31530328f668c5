package sqladapter

import (
	"context"

	"errors"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

var contentSQL = struct {
	scopesAt, updateMessage, erase, bare            Statement
	contextsOf, setSummary, setParent, forgetErased Statement
}{
	scopesAt:      `SELECT "scope" FROM "lineage_reach" WHERE "run_id" = ? AND "last_seq" >= ?`,
	updateMessage: `UPDATE "messages" SET "type" = ?, "data" = ? WHERE "id" = ?`,
	contextsOf:    `SELECT "id" FROM "contexts" WHERE "summary_content_id" = ?`,
	setSummary:    `UPDATE "contexts" SET "summary_text" = ?, "summary_embedding" = ? WHERE "id" = ?`,
	setParent:     `UPDATE "contexts" SET "parent_context_id" = ? WHERE "id" = ?`,
	forgetErased:  `DELETE FROM "lineage_erased" WHERE "content_id" = ?`,
}

const contextKey = "context/"

func contextOfKey(key string) (id string, ok bool) { return strings.CutPrefix(key, contextKey) }

// rewrite rewrites rows with content that was erased or stored again.
func (w *projection) rewrite(ctx context.Context, ids []content.ID) error {
	for _, id := range ids {
		for usage, err := range w.state.Where(ctx, id) {
			if err != nil {
				return err
			}
			if err := w.rewriteAt(ctx, usage.Span); err != nil {
				return err
			}
		}
		has, err := w.state.Has(ctx, []content.ID{id})
		if err != nil {
			return err
		}
		if has[0] {
			w.batch.before = append(w.batch.before, exec(contentSQL.forgetErased, id.String()))
		} else {
			w.batch.need(tables.Erased, id.String())
		}
		if !w.ChatsOnly {
			if err := w.rewriteBlock(ctx, id, has[0]); err != nil {
				return err
			}
		}
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// rewriteAt rewrites the messages of a span.
func (w *projection) rewriteAt(ctx context.Context, at structure.SpanRef) error {
	var scopes []string
	err := w.DB.Read(ctx, func(c *Conn) (err error) {
		scopes, err = collect(ctx, c, scanString, contentSQL.scopesAt, at.Run.String(), at.Seq)
		return err
	})
	if err != nil {
		return err
	}
	for _, key := range scopes {
		thread, err := structure.ParseID[structure.ThreadID](key)
		if err != nil {
			continue // not a chat
		}
		v, err := w.open(ctx, &scope{key: key, thread: thread})
		if err != nil {
			return err
		}
		for s, err := range w.state.Path(ctx, at, structure.Window{Last: 1}, backend.PathOptions{Bodies: true}) {
			if err != nil {
				return err
			}
			m, err := v.reader.Message(ctx, s, "")
			if err != nil {
				return err
			}
			w.rewriteMessage(m)
		}
		if err := w.room(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *projection) rewriteMessage(m chat.Message) {
	m.Data = w.DB.cleanJSON(m.Data)
	w.batch.n += 4
	w.batch.bytes += 2 * len(m.Data)
	w.batch.changed++
	w.batch.after = append(w.batch.after, func(ctx context.Context, c *Conn) error {
		known, err := c.message(ctx, m.ID)
		if err != nil || known == nil {
			return err
		}
		depths, err := c.newDepths(ctx, []chat.Message{*known})
		if err != nil {
			return err
		}
		if err := c.forgetMessages(ctx, []string{m.ID}); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, contentSQL.updateMessage, optional(m.Type), string(m.Data), m.ID); err != nil {
			return err
		}
		known.Type, known.Data = m.Type, m.Data
		return c.knowOwn(ctx, []chat.Message{*known}, depths)
	})
}

// rewriteBlock rewrites the row of the content itself.
func (w *projection) rewriteBlock(ctx context.Context, id content.ID, has bool) error {
	var block *structure.Block
	var body []byte
	if has {
		blocks, err := w.state.Blocks(ctx, []content.ID{id})
		if err != nil && !errors.Is(err, lineage.ErrErased) {
			return err
		}
		if err == nil {
			block = w.cleanBlock(blocks[0])
			if body, err = w.body(ctx, blocks[0]); err != nil {
				return err
			}
		}
	}
	summaries, err := w.summariesOf(ctx, id)
	if err != nil {
		return err
	}
	w.batch.after = append(w.batch.after, func(ctx context.Context, c *Conn) error {
		var summary any
		if body != nil {
			summary = w.DB.clean(string(body))
		}
		embeddings := make(map[string][]byte) // of the latest summary with the text, by context
		for _, s := range summaries {
			if _, err := c.Exec(ctx, summarySQL.fill, summary, s.Embedding, s.ID.String()); err != nil {
				return err
			}
			embeddings[s.Context.String()] = s.Embedding
		}
		contexts, err := collect(ctx, c, scanString, contentSQL.contextsOf, id.String())
		if err != nil {
			return err
		}
		for _, of := range contexts {
			if _, err := c.Exec(ctx, contentSQL.setSummary, summary, embeddings[of], of); err != nil {
				return err
			}
		}
		var value any
		if body != nil {
			value = w.DB.bytesText(body)
		}
		if _, err := c.Exec(ctx, valueSQL.fill, value, id.String()); err != nil {
			return err
		}
		used, err := c.used(ctx, []string{id.String()})
		if err != nil || !used[id.String()] {
			return err // the row is missing or bare
		}
		if block == nil {
			return c.emptyBlock(ctx, id.String())
		}
		return c.fillBlock(ctx, block, body)
	})
	return nil
}

// emptyBlock makes the row of a block bare.
func (c *Conn) emptyBlock(ctx context.Context, id string) error {
	if err := c.releaseBlock(ctx, id); err != nil {
		return err
	}
	_, err := c.Exec(ctx, sqlOf[tables.Blocks].update, append((&blockRow{bare: true, erased: true}).values(), id)...)
	return err
}

// releaseBlock marks what a block refers to as possibly unused, before the block is overwritten.
func (c *Conn) releaseBlock(ctx context.Context, id string) error {
	parents, err := c.parentsOf(ctx, []string{id})
	if err != nil {
		return err
	}
	if !slices.Contains(parents, id) {
		parents = append(parents, id) // to check its user
	}
	return c.addOrphans(ctx, parents)
}

func (c *Conn) addOrphans(ctx context.Context, ids []string) error {
	return c.insertMissing(ctx, tables.Orphans, ids, func(id string) []any { return []any{id} })
}

// fillBlock overwrites the row of a block.
func (c *Conn) fillBlock(ctx context.Context, block *structure.Block, body []byte) error {
	if err := c.releaseBlock(ctx, block.ID.String()); err != nil {
		return err
	}
	var one batch
	one.addBlock(block, body)
	id := block.ID.String()
	row := one.blocks[id]
	delete(one.blocks, id)
	one.blockOrder = one.blockOrder[:0]
	if row.parent != "" && row.parent != id {
		one.blockOrder = append(one.blockOrder, row.parent)
	}
	if err := c.insertBlocks(ctx, &one); err != nil {
		return err
	}
	_, err := c.Exec(ctx, sqlOf[tables.Blocks].update, append(row.values(), id)...)
	return err
}

// linkContexts sets the parents of contexts that did not exist when they were inserted.
func (w *projection) linkContexts(ctx context.Context) error {
	for _, id := range w.late {
		c, err := w.state.Context(ctx, id)
		if err != nil {
			return err
		}
		parent, err := w.parentOf(ctx, c.Parent)
		if err != nil {
			return err
		}
		w.batch.n++
		w.batch.after = append(w.batch.after, exec(contentSQL.setParent, parent, id.String()))
		if err := w.room(ctx); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// parentOf returns the id of a context's parent, null if there is none or it was deleted.
func (w *projection) parentOf(ctx context.Context, parent structure.ContextID) (any, error) {
	if parent.IsZero() {
		return nil, nil
	}
	_, err := w.state.Context(ctx, parent)
	if errors.Is(err, lineage.ErrNotFound) {
		return nil, nil
	}
	return parent.String(), err
}

// sweepStep is the number of blocks checked per transaction.
const sweepStep = 200

// sweep deletes unused content and users.
func (w *projection) sweep(ctx context.Context) error {
	for {
		left := false
		err := w.DB.Read(ctx, func(c *Conn) error {
			rows, err := c.Query(ctx, blockSQL.orphans, 1)
			one, err := first(rows, err, scanString)
			left = one != nil
			return err
		})
		if err != nil || !left {
			return err
		}
		w.batch.before = append(w.batch.before, sweepSome)
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
}

func sweepSome(ctx context.Context, c *Conn) error {
	ids, err := collect(ctx, c, scanString, blockSQL.orphans, sweepStep)
	if err != nil {
		return err
	}
	used, err := c.used(ctx, ids)
	if err != nil {
		return err
	}
	derived, err := c.has(ctx, blockSQL.derived, ids)
	if err != nil {
		return err
	}
	var gone, parents []string
	for _, id := range ids {
		if !used[id] {
			gone = append(gone, id)
		}
	}
	if parents, err = c.parentsOf(ctx, gone); err != nil {
		return err
	}
	if err := c.execAll(ctx, blockSQL.removeOrphans, ids); err != nil {
		return err
	}
	bare := (&blockRow{bare: true}).values()
	var removed []string
	for _, id := range gone {
		if !derived[id] {
			removed = append(removed, id)
		} else if _, err := c.Exec(ctx, sqlOf[tables.Blocks].update, append(bare[:len(bare):len(bare)], id)...); err != nil {
			return err
		}
	}
	if err := c.execAll(ctx, blockSQL.remove, removed); err != nil {
		return err
	}
	if err := c.addOrphans(ctx, parents); err != nil || len(ids) == sweepStep || len(parents) > 0 {
		return err
	}
	_, err = c.Exec(ctx, blockSQL.unusedUsers)
	return err
}

// parentsOf returns the content that ids are derived from.
func (c *Conn) parentsOf(ctx context.Context, ids []string) ([]string, error) {
	return collectList(ctx, c, scanString, blockSQL.parents, ids)
}

// execAll runs a statement for a list of ids.
func (c *Conn) execAll(ctx context.Context, s Statement, ids []string) error {
	for part := range batches(ids, maxList) {
		args := padded(part)
		if _, err := c.ExecN(ctx, s, len(args), args...); err != nil {
			return err
		}
	}
	return nil
}
