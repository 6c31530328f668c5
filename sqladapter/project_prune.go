package sqladapter

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/structure"
)

var pruneSQL = struct {
	chatOf, removePins, removeReach, removeRun, removeScope                           Statement
	clearHeads, clearTips, clearTip, orphanContext, orphanContexts                    Statement
	removeContext, removeContexts                                                     Statement
	lastOf, firstOf, setsOf, orphans, clearSets, removeSet, removeUsages, removeSpans Statement
	textsByID, termsByID, otherTextsByID                                              Statement
}{
	chatOf:      `SELECT "chat_id" FROM "lineage_scopes" WHERE "scope" = ?`,
	removePins:  `DELETE FROM "lineage_pins" WHERE "scope" = ?`,
	removeReach: `DELETE FROM "lineage_reach" WHERE "scope" = ?`,
	removeRun:   `DELETE FROM "lineage_reach" WHERE "scope" = ? AND "run_id" = ?`,
	removeScope: `DELETE FROM "lineage_scopes" WHERE "scope" = ?`,

	clearHeads:     `UPDATE "branches" SET "headMessageId" = NULL WHERE "chatId" = ?`,
	clearTips:      `UPDATE "contexts" SET "tip_span_id" = NULL WHERE "thread_id" = ?`,
	clearTip:       `UPDATE "contexts" SET "tip_span_id" = NULL WHERE "id" = ?`,
	orphanContext:  `UPDATE "contexts" SET "parent_context_id" = NULL WHERE "parent_context_id" = ?`,
	orphanContexts: `UPDATE "contexts" SET "parent_context_id" = NULL WHERE "parent_context_id" IN (SELECT "id" FROM "contexts" WHERE "thread_id" = ?)`,
	removeContext:  `DELETE FROM "contexts" WHERE "id" = ?`,
	removeContexts: `DELETE FROM "contexts" WHERE "thread_id" = ?`,

	lastOf:  `SELECT COALESCE(MAX("last_seq"), 0) AS "last" FROM "lineage_reach" WHERE "run_id" = ?`,
	firstOf: `SELECT COALESCE(MIN("position"), 0) AS "first" FROM "spans" WHERE "run_id" = ?`,
	setsOf:  `SELECT DISTINCT "span_set_id" FROM "spans" WHERE "run_id" = ? AND "seq" > ? AND "span_set_id" IS NOT NULL`,
	orphans: `INSERT INTO "lineage_orphans" ("content_id") SELECT n."id" FROM (` +
		`SELECT u."content_id" AS "id" FROM "message_usages" u JOIN "spans" s ON s."id" = u."span_id" WHERE s."run_id" = ? AND s."seq" > ? ` +
		`UNION SELECT u."form_id" FROM "message_usages" u JOIN "spans" s ON s."id" = u."span_id" WHERE s."run_id" = ? AND s."seq" > ? ` +
		`UNION SELECT u."metadata_id" FROM "message_usages" u JOIN "spans" s ON s."id" = u."span_id" WHERE s."run_id" = ? AND s."seq" > ?) n ` +
		`WHERE n."id" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "lineage_orphans" o WHERE o."content_id" = n."id")`,
	clearSets:    `UPDATE "spans" SET "span_set_id" = NULL WHERE "run_id" = ? AND "seq" > ? AND "span_set_id" IS NOT NULL`,
	removeSet:    `DELETE FROM "span_sets" WHERE "id" = ? AND NOT EXISTS (SELECT 1 FROM "spans" WHERE "spans"."span_set_id" = "span_sets"."id")`,
	removeUsages: `DELETE FROM "message_usages" WHERE "span_id" IN (SELECT "id" FROM "spans" WHERE "run_id" = ? AND "seq" > ?)`,
	removeSpans:  `DELETE FROM "spans" WHERE "run_id" = ? AND "seq" > ?`,

	textsByID:      `DELETE FROM "messages_fts" WHERE "rowid" IN (SELECT "row" FROM "lineage_messages" WHERE "messageId" IN ({list}) AND "hasText" = 1)`,
	termsByID:      `DELETE FROM "lineage_terms" WHERE "rowid" IN (SELECT "row" FROM "lineage_messages" WHERE "messageId" IN ({list}))`,
	otherTextsByID: `DELETE FROM "messages_fts" WHERE "messageId" IN ({list})`,
}

// pruneStep is the number of messages deleted per transaction.
const pruneStep = maxList

// removeContext deletes a context in a scope that stays. Its pin remains until the scope is complete
// again.
func (w *projection) removeContext(id structure.ContextID) {
	text := id.String()
	w.batch.before = append(w.batch.before, exec(pruneSQL.orphanContext, text), exec(pruneSQL.removeContext, text),
		exec(valueSQL.removeOfOwner, structure.ContextScope.String(), text))
}

// removeScope deletes all rows of a scope.
func (w *projection) removeScope(ctx context.Context, key string) error {
	w.batch.before = append(w.batch.before, func(ctx context.Context, c *Conn) error {
		rows, err := c.Query(ctx, pruneSQL.chatOf, key)
		chatID, err := first(rows, err, func(rows *sql.Rows) (id sql.NullString, err error) {
			err = rows.Scan(&id)
			return id, err
		})
		if err != nil || chatID == nil {
			return err
		}
		if chatID.Valid {
			counts, err := collectMap[int](ctx, c, chatSQL.messageCounts, []string{chatID.String})
			if err != nil {
				return err
			}
			w.batch.removed = counts[chatID.String]
			if err := c.deleteChat(ctx, chatID.String); err != nil {
				return err
			}
		}
		return w.removeStructure(ctx, c, key)
	})
	return w.flush(ctx)
}

// removeStructure deletes the rows of a scope outside of the chat tables.
func (w *projection) removeStructure(ctx context.Context, c *Conn, key string) error {
	runs, err := collect(ctx, c, scanExtent, scopeSQL.reach, key)
	if err != nil {
		return err
	}
	steps := []Statement{pruneSQL.removeReach, pruneSQL.removePins, pruneSQL.removeScope}
	if !w.ChatsOnly {
		if _, err := c.Exec(ctx, valueSQL.removeOfOwner, structure.ThreadScope.String(), key); err != nil {
			return err
		}
		steps = append(steps, valueSQL.removeOfContexts, pruneSQL.orphanContexts, pruneSQL.removeContexts)
	}
	for _, s := range steps {
		if _, err := c.Exec(ctx, s, key); err != nil {
			return err
		}
	}
	if w.ChatsOnly {
		return nil
	}
	if id, alone := contextOfKey(key); alone {
		if _, err := c.Exec(ctx, valueSQL.removeOfOwner, structure.ContextScope.String(), id); err != nil {
			return err
		}
		for _, s := range []Statement{pruneSQL.orphanContext, pruneSQL.removeContext} {
			if _, err := c.Exec(ctx, s, id); err != nil {
				return err
			}
		}
	}
	type start struct {
		run   string
		first int64
	}
	starts := make([]start, len(runs))
	for i, r := range runs {
		starts[i].run = r.run.String()
		if _, err := c.Get(ctx, pruneSQL.firstOf, []any{starts[i].run}, &starts[i].first); err != nil {
			return err
		}
	}
	// A run is deleted before the run it starts from.
	slices.SortFunc(starts, func(a, b start) int { return cmp.Or(cmp.Compare(b.first, a.first), cmp.Compare(a.run, b.run)) })
	for _, s := range starts {
		if err := c.removeSpans(ctx, s.run); err != nil {
			return err
		}
	}
	return nil
}

// removeSpans deletes the spans of a run that no scope sees.
func (c *Conn) removeSpans(ctx context.Context, run string) error {
	var last int64
	if _, err := c.Get(ctx, pruneSQL.lastOf, []any{run}, &last); err != nil {
		return err
	}
	sets, err := collect(ctx, c, scanString, pruneSQL.setsOf, run, last)
	if err != nil {
		return err
	}
	if _, err := c.Exec(ctx, pruneSQL.orphans, run, last, run, last, run, last); err != nil {
		return err
	}
	for _, s := range []Statement{pruneSQL.clearSets, pruneSQL.removeUsages} {
		if _, err := c.Exec(ctx, s, run, last); err != nil {
			return err
		}
	}
	for _, set := range sets {
		if _, err := c.Exec(ctx, pruneSQL.removeSet, set); err != nil {
			return err
		}
	}
	_, err = c.Exec(ctx, pruneSQL.removeSpans, run, last)
	return err
}

// forgetMessages deletes the index rows and texts of messages.
func (c *Conn) forgetMessages(ctx context.Context, ids []string) error {
	steps := []Statement{pruneSQL.otherTextsByID, knownSQL.remove}
	if c.db.dialect.Search().Numbered {
		steps = []Statement{pruneSQL.textsByID, pruneSQL.termsByID, knownSQL.remove}
	}
	for _, s := range steps {
		if err := c.execAll(ctx, s, ids); err != nil {
			return err
		}
	}
	return nil
}

// stale is a part of a run that a scope no longer sees: the spans after last.
type stale struct {
	run  structure.RunInfo
	from uint64
	last uint64
}

// shrink deletes rows that a scope no longer sees. If it cannot determine them, it deletes all rows
// of the scope; grow then inserts them again.
func (w *projection) shrink(ctx context.Context, s *scope) error {
	v, err := w.open(ctx, s)
	if err == nil {
		err = v.look(ctx)
	}
	if err != nil {
		return err
	}
	gone, same, err := v.gone(ctx)
	if err != nil {
		return err
	}
	if !same {
		s.fresh = true
		return w.removeScope(ctx, s.key)
	}
	if len(gone) == 0 {
		return w.flush(ctx)
	}
	v.clearPointers()
	for _, g := range gone {
		done, err := v.dropSpans(ctx, g)
		if err != nil {
			return err
		}
		if !done {
			s.fresh = true
			return w.removeScope(ctx, s.key)
		}
	}
	return w.flush(ctx)
}

// gone returns the parts of runs that the database has and the scope no longer sees, each run
// before the one it starts from. same is false if messages have other ids now, or if the store no
// longer has the deleted spans.
func (v *view) gone(ctx context.Context) (gone []stale, same bool, err error) {
	for _, l := range v.lines {
		if l.has.last == 0 {
			continue
		}
		seen := l.run.ID == l.has.run
		if seen {
			if same, err := v.keepsIDs(ctx, l); err != nil || !same {
				return nil, false, err
			}
			if l.last >= l.has.last {
				continue
			}
		}
		g := stale{from: l.has.last, last: l.last}
		if g.run, err = v.w.state.Run(ctx, l.has.run); errors.Is(err, lineage.ErrNotFound) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		gone = append(gone, g)
	}
	slices.SortFunc(gone, func(a, b stale) int {
		return cmp.Or(cmp.Compare(b.run.Depth, a.run.Depth), a.run.ID.Compare(b.run.ID))
	})
	return gone, true, nil
}

// clearPointers clears references to rows that will be deleted. grow sets them again.
func (v *view) clearPointers() {
	b := &v.w.batch
	if v.record != nil {
		id := chat.IDOfThread(v.record)
		b.before = append(b.before, exec(pruneSQL.clearHeads, id), exec(chatSQL.removeCheckpoints, id))
		if !v.w.ChatsOnly {
			b.before = append(b.before, exec(pruneSQL.clearTips, v.key))
		}
		return
	}
	b.before = append(b.before, exec(pruneSQL.clearTip, v.context.String()))
}

// dropSpans deletes the messages and spans of a part of a run, backwards. done is false if the
// store no longer has them.
func (v *view) dropSpans(ctx context.Context, g stale) (done bool, err error) {
	w, run := v.w, g.run.ID.String()
	for at := g.from; at > g.last; {
		n := min(at-g.last, pruneStep)
		var ids []string
		if v.reader != nil {
			tip := structure.SpanRef{Run: g.run.ID, Seq: at}
			for step, err := range w.state.Path(ctx, tip, structure.Window{Last: n}, backend.PathOptions{}) {
				if errors.Is(err, lineage.ErrNotFound) {
					return false, nil
				}
				if err != nil {
					return false, err
				}
				id, err := v.reader.MessageID(ctx, step)
				if err != nil {
					return false, err
				}
				ids = append(ids, id)
			}
		}
		at -= n
		left := at
		own := min(v.lines[g.run.ID].has.own, left)
		w.batch.removed += len(ids)
		w.batch.before = append(w.batch.before, func(ctx context.Context, c *Conn) error {
			if len(ids) > 0 {
				if err := c.forgetMessages(ctx, ids); err != nil {
					return err
				}
				if err := c.deleteMessages(ctx, ids); err != nil {
					return err
				}
			}
			var err error
			if left == 0 {
				_, err = c.Exec(ctx, pruneSQL.removeRun, v.key, run)
			} else {
				_, err = c.Exec(ctx, scopeSQL.moveReach, left, int64(own), v.key, run)
			}
			if err != nil || w.ChatsOnly {
				return err
			}
			return c.removeSpans(ctx, run)
		})
		if err := w.flush(ctx); err != nil {
			return false, err
		}
	}
	return true, nil
}
