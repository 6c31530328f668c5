package project

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/structure"
)

// pruneStep is the number of messages deleted per transaction.
const pruneStep = lists.Max

// removeScope deletes all rows of a scope. If the scope is written again, it keeps its pins until it is complete. So
// an interrupted pass is repeated.
func (w *applier) removeScope(ctx context.Context, key string, again bool) error {
	w.batch.before = append(w.batch.before, func(ctx context.Context, c *sqladapter.Conn) error {
		var chatID sql.NullString
		found, err := c.Get(ctx, pruneSQL.chatOf, []any{key}, &chatID)
		if err != nil || !found {
			return err
		}
		if chatID.Valid {
			counts, err := chatrows.MessageCounts(ctx, c, []string{chatID.String})
			if err != nil {
				return err
			}
			w.batch.removed = counts[chatID.String]
			if err := chatrows.DeleteChat(ctx, c, chatID.String); err != nil {
				return err
			}
		}
		if w.ChatsOnly {
			_, err = c.Exec(ctx, pruneSQL.removeReach, key)
		} else {
			err = w.removeStructure(ctx, c, key)
		}
		if err == nil {
			_, err = c.Exec(ctx, pruneSQL.removeScope, key)
		}
		if err == nil && !again {
			_, err = c.Exec(ctx, pruneSQL.removePins, key)
		}
		return err
	})
	return w.flush(ctx)
}

// removeStructure deletes the rows of a scope outside of the chat tables.
func (w *applier) removeStructure(ctx context.Context, c *sqladapter.Conn, key string) error {
	contexts, err := lists.Collect(ctx, c, lists.ScanString, pruneSQL.contextsOf, key)
	if err != nil {
		return err
	}
	runs, err := lists.Collect(ctx, c, lists.ScanString, pruneSQL.runsOf, key)
	if err != nil {
		return err
	}
	for _, s := range []sqladapter.Statement{pruneSQL.removeReach, valueSQL.removeOfThread} {
		if _, err := c.Exec(ctx, s, key); err != nil {
			return err
		}
	}
	if err := w.removeContexts(ctx, c, contexts); err != nil {
		return err
	}
	for _, run := range runs {
		if err := removeSpans(ctx, c, run); err != nil {
			return err
		}
	}
	return nil
}

// removeSpans deletes the spans of a run that no scope sees.
func removeSpans(ctx context.Context, c *sqladapter.Conn, run string) error {
	var last int64
	if _, err := c.Get(ctx, pruneSQL.lastOf, []any{run}, &last); err != nil {
		return err
	}
	sets, err := lists.Collect(ctx, c, lists.ScanString, pruneSQL.setsOf, run, last)
	if err != nil {
		return err
	}
	if _, err := c.Exec(ctx, pruneSQL.orphans, run, last, run, last, run, last); err != nil {
		return err
	}
	for _, s := range []sqladapter.Statement{pruneSQL.clearSets, pruneSQL.removeUsages} {
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

// shrink deletes the rows that a scope no longer sees. If it cannot find out which these are, it deletes all rows of
// the scope, and grow inserts them again.
func (w *applier) shrink(ctx context.Context, s *scope) error {
	if !s.renewed {
		if err := w.drop(ctx, s); !errors.Is(err, lineage.ErrNotFound) {
			return err
		}
	}
	s.fresh = true
	return w.removeScope(ctx, s.key, true)
}

// drop deletes the rows of what is gone from a scope. The error is ErrNotFound if the store does not have that any
// more.
func (w *applier) drop(ctx context.Context, s *scope) error {
	v, err := w.open(ctx, s)
	if err == nil {
		err = v.load(ctx)
	}
	if err != nil {
		return err
	}
	gone, err := v.gone(ctx)
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		v.clearPointers()
	}
	for _, g := range gone {
		if err := v.dropSpans(ctx, g); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// gone returns the runs of which the database has more than the scope sees. A run comes before the run that it starts
// from.
func (v *visibility) gone(ctx context.Context) (gone []*visibleRun, err error) {
	for _, l := range v.visible {
		if l.last >= l.has.last {
			continue
		}
		if l.run, err = v.w.state.Run(ctx, l.has.run); err != nil {
			return nil, err
		}
		gone = append(gone, l)
	}
	slices.SortFunc(gone, func(a, b *visibleRun) int {
		return cmp.Or(cmp.Compare(b.run.Depth, a.run.Depth), a.run.ID.Compare(b.run.ID))
	})
	return gone, nil
}

// clearPointers clears references to rows that will be deleted. grow sets them again.
func (v *visibility) clearPointers() {
	b := &v.w.batch
	if v.record != nil {
		id := chat.IDOfThread(v.record)
		b.before = append(b.before, exec(pruneSQL.clearHeads, id), func(ctx context.Context, c *sqladapter.Conn) error { return chatrows.DeleteCheckpoints(ctx, c, id) })
	}
	if !v.w.ChatsOnly {
		b.before = append(b.before, exec(pruneSQL.clearTips, v.key))
	}
}

// dropSpans deletes the messages and spans of a run that the scope does not see, backwards.
func (v *visibility) dropSpans(ctx context.Context, l *visibleRun) error {
	w, run := v.w, l.run.ID.String()
	for left := l.has.last; left > l.last; {
		tip, n := structure.SpanRef{Run: l.run.ID, Seq: left}, min(left-l.last, pruneStep)
		var ids []string
		if v.reader != nil {
			for step, err := range w.state.Path(ctx, tip, structure.Window{Last: n}, backend.PathOptions{}) {
				if err != nil {
					return err
				}
				id, err := v.reader.MessageID(ctx, step)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
		}
		left -= n
		moved := exec(pruneSQL.removeRun, v.key, run)
		if left > 0 {
			moved = exec(reachSQL.move, left, int64(min(l.has.own, left)), v.key, run)
		}
		w.batch.removed += len(ids)
		w.batch.before = append(w.batch.before, func(ctx context.Context, c *sqladapter.Conn) error {
			if err := chatrows.UnindexWithTexts(ctx, c, ids); err != nil {
				return err
			}
			return chatrows.DeleteMessages(ctx, c, ids)
		}, moved)
		if !w.ChatsOnly {
			w.batch.before = append(w.batch.before, func(ctx context.Context, c *sqladapter.Conn) error { return removeSpans(ctx, c, run) })
		}
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}
