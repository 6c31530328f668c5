package sqladapter

import (
	"context"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

var contentSQL = struct {
	scopesAt, updateMessage, forgetErased Statement
}{
	scopesAt:      `SELECT "scope" FROM "lineage_reach" WHERE "run_id" = ? AND "last_seq" >= ?`,
	updateMessage: `UPDATE "messages" SET "type" = ?, "data" = ? WHERE "id" = ?`,
	forgetErased:  `DELETE FROM "lineage_erased" WHERE "content_id" = ?`,
}

const contextKey = "context/"

// rewrite rewrites rows with content that was erased or stored again.
func (w *projection) rewrite(ctx context.Context, ids []content.ID) error {
	for _, id := range ids {
		if err := w.flush(ctx); err != nil { // so that the database has what uses it
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
			w.batch.before = append(w.batch.before, exec(contentSQL.forgetErased, id.String()))
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
func (w *projection) rewriteAt(ctx context.Context, at structure.SpanRef) error {
	var scopes []string
	scopes, err := readAll(ctx, w.DB, scanString, contentSQL.scopesAt, at.Run.String(), at.Seq)
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
	m.Data = cleanJSON(m.Data)
	w.batch.n += 4
	w.batch.bytes += 2 * len(m.Data)
	w.batch.changed++
	w.batch.after = append(w.batch.after, func(ctx context.Context, c *Conn) error {
		rows, err := c.messages(ctx, []string{m.ID})
		known, there := rows[m.ID]
		if err != nil || !there {
			return err
		}
		depths, err := c.newDepths(ctx, []chat.Message{known})
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
		return c.knowOwn(ctx, []chat.Message{known}, depths)
	})
}

// rewriteBlock rewrites the row of the content itself, and values that are this content.
func (w *projection) rewriteBlock(ctx context.Context, id content.ID) error {
	value, err := w.stored(ctx, id)
	if err != nil {
		return err
	}
	w.batch.after = append(w.batch.after, exec(valueSQL.fill, bytesText(value), id.String()))
	used, err := read(ctx, w.DB, func(c *Conn) (map[string]bool, error) { return c.has(ctx, blockSQL.used, []string{id.String()}) })
	if err != nil || len(used) == 0 {
		return err // the row is missing or bare
	}
	return w.addContent(ctx, id)
}

func (c *Conn) addOrphans(ctx context.Context, ids []string) error {
	return c.insertMissing(ctx, tables.Orphans, ids, func(id string) []any { return []any{id} })
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
	used, err := c.has(ctx, blockSQL.used, ids)
	if err != nil {
		return err
	}
	if err := c.execAll(ctx, sqlOf[tables.Orphans].remove, ids); err != nil {
		return err
	}
	gone := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return used[id] })
	parents, err := collectList(ctx, c, scanString, blockSQL.parents, gone)
	if err != nil {
		return err
	}
	derived, err := c.has(ctx, blockSQL.derived, gone)
	if err != nil {
		return err
	}
	for id := range derived {
		if _, err := c.Exec(ctx, sqlOf[tables.Blocks].update, append(bareBlock(id, false)[1:], id)...); err != nil {
			return err
		}
	}
	gone = slices.DeleteFunc(gone, func(id string) bool { return derived[id] })
	if err := c.execAll(ctx, sqlOf[tables.Blocks].remove, gone); err != nil {
		return err
	}
	if err := c.addOrphans(ctx, parents); err != nil || len(ids) == sweepStep || len(parents) > 0 {
		return err
	}
	_, err = c.Exec(ctx, blockSQL.unusedUsers)
	return err
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
