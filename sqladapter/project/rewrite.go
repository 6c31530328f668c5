package project

import (
	"context"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

var rewriteSQL = struct {
	scopesAt, updateMessage, forgetErased, fillValues sqladapter.Statement
}{
	scopesAt:      `SELECT "scope" FROM "lineage_reach" WHERE "run_id" = ? AND "last_seq" >= ?`,
	updateMessage: `UPDATE "messages" SET "type" = ?, "data" = ? WHERE "id" = ?`,
	forgetErased:  `DELETE FROM "lineage_erased" WHERE "content_id" = ?`,
	fillValues:    `UPDATE "lineage_values" SET "value" = ? WHERE "content_id" = ?`,
}

// rewrite rewrites rows with content that was erased or stored again.
func (w *applier) rewrite(ctx context.Context, ids []content.ID) error {
	for _, id := range ids {
		if err := w.flush(ctx); err != nil { // the database must have the rows that use the content
			return err
		}
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
			w.batch.before = append(w.batch.before, exec(rewriteSQL.forgetErased, id.String()))
		} else {
			w.batch.need(tables.Erased, id.String())
		}
		if !w.ChatsOnly {
			if err := w.rewriteBlock(ctx, id); err != nil {
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
func (w *applier) rewriteAt(ctx context.Context, at structure.SpanRef) error {
	var scopes []string
	scopes, err := lists.ReadAll(ctx, w.DB, lists.ScanString, rewriteSQL.scopesAt, at.Run.String(), at.Seq)
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
		if err := w.flushFull(ctx); err != nil {
			return err
		}
	}
	return nil
}

// rewriteMessage rewrites the row of a message and its search data.
func (w *applier) rewriteMessage(m chat.Message) {
	m.Data = projected.CleanJSON(m.Data)
	w.batch.n += 4
	w.batch.bytes += 2 * len(m.Data)
	w.batch.changed++
	w.batch.after = append(w.batch.after, func(ctx context.Context, c *sqladapter.Conn) error {
		rows, err := chatrows.Messages(ctx, c, []string{m.ID})
		known, there := rows[m.ID]
		if err != nil || !there {
			return err
		}
		depths, err := chatrows.DepthsOfNew(ctx, c, []chat.Message{known})
		if err != nil {
			return err
		}
		if err := chatrows.UnindexWithTexts(ctx, c, []string{m.ID}); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, rewriteSQL.updateMessage, chatrows.Optional(m.Type), string(m.Data), m.ID); err != nil {
			return err
		}
		known.Type, known.Data = m.Type, m.Data
		return chatrows.IndexOwn(ctx, c, []chat.Message{known}, depths)
	})
}

// rewriteBlock rewrites the row of the content, and values with this content.
func (w *applier) rewriteBlock(ctx context.Context, id content.ID) error {
	value, err := w.stored(ctx, id)
	if err != nil {
		return err
	}
	w.batch.after = append(w.batch.after, exec(rewriteSQL.fillValues, projected.BytesText(value), id.String()))
	used, err := lists.Read(ctx, w.DB, func(c *sqladapter.Conn) (map[string]bool, error) {
		return lists.CollectSet(ctx, c, blockSQL.used, []string{id.String()})
	})
	if err != nil || len(used) == 0 {
		return err // the row is missing or bare
	}
	return w.addContent(ctx, id)
}
