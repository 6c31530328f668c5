package search

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// settle updates threads, contexts, checkpoints, summaries and erased content to their state in the
// snapshot.
func (f *writer) settle(ctx context.Context) error {
	c := f.changes
	for id := range c.Threads { // adds changed contexts
		if err := f.settleThread(ctx, id); err != nil {
			return err
		}
	}
	for id, change := range c.Contexts {
		if change.Stated || change.Moved {
			if err := f.settleContext(ctx, id); err != nil {
				return err
			}
		}
	}
	for name := range c.Checkpoints {
		if err := f.settleCheckpoint(ctx, name); err != nil {
			return err
		}
	}
	if err := f.settleContents(ctx); err != nil { // adds changed summaries
		return err
	}
	for id, change := range c.Contexts {
		if change.Stated || change.Summarized {
			if err := f.settleSummaries(ctx, id); err != nil {
				return err
			}
		}
	}
	return f.reach(ctx)
}

// settleContents updates content that was erased, or stored again.
func (f *writer) settleContents(ctx context.Context) error {
	if f.erased {
		for id := range f.changes.Stored {
			var one int
			was, err := f.get(ctx, `SELECT 1 FROM erased WHERE id = ?`, []any{id[:]}, &one)
			if err != nil {
				return err
			}
			if was {
				f.changes.Erased[id] = true
			}
		}
	}
	for id := range f.changes.Erased {
		if err := f.settleContent(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// blobs returns the values of a column.
func (f *writer) blobs(ctx context.Context, statement string, args ...any) (all [][]byte, err error) {
	err = each(ctx, f.tx, func(scan func(...any) error) error {
		var b []byte
		err := scan(&b)
		all = append(all, b)
		return err
	}, statement, args...)
	return all, err
}

// home returns the number of an existing thread, 0 if there is none.
func (f *writer) home(ctx context.Context, id structure.ThreadID) (int64, error) {
	if n, known := f.homes[id]; known || id.IsZero() {
		return n, nil
	}
	t, err := f.snapshot.Thread(ctx, id)
	n := int64(0)
	if err == nil {
		n, err = f.threadNumber(ctx, t.Home())
	} else if isGone(err) {
		err = nil
	}
	f.homes[id] = n
	return n, err
}

func isGone(err error) bool { return errors.Is(err, lineage.ErrNotFound) }

// settleThread stores the user of a thread and whether it keeps its runs. If the thread is gone,
// everything in it is marked as changed.
func (f *writer) settleThread(ctx context.Context, id structure.ThreadID) error {
	is, err := f.home(ctx, id)
	if err != nil {
		return err
	}
	if is != 0 {
		t, err := f.snapshot.Thread(ctx, id)
		if err != nil {
			return err
		}
		if err := f.exec(ctx, `UPDATE threads SET user = ?, keeps = ? WHERE number = ?`, t.UserID, t.Keeps, is); err != nil {
			return err
		}
	}
	if err := f.moveAll(ctx, `SELECT r.number FROM runs r JOIN threads t ON t.number = r.thread WHERE t.id = ?`, id[:]); err != nil {
		return err
	}
	gone, err := f.blobs(ctx, `SELECT p.id FROM threads t JOIN tips p ON p.thread = t.number WHERE t.id = ? AND t.number <> ? AND p.of IS NULL`, id[:], is)
	if err != nil {
		return err
	}
	for _, context := range gone {
		if len(context) != 16 {
			return fmt.Errorf("context %x: %w", context, errUseless)
		}
		f.changes.Context(structure.ContextID(context), derived.ContextChange{Stated: true})
	}
	err = f.moveAll(ctx, `SELECT p.run FROM threads t JOIN tips p ON p.thread = t.number WHERE t.id = ? AND t.number <> ?`, id[:], is)
	if err != nil {
		return err
	}
	err = f.exec(ctx, `DELETE FROM tips WHERE thread IN (SELECT number FROM threads WHERE id = ? AND number <> ?)`, id[:], is)
	if err != nil {
		return err
	}
	return f.exec(ctx, `UPDATE threads SET keeps = 0 WHERE id = ? AND number <> ?`, id[:], is)
}

// moveAll marks runs as moved.
func (f *writer) moveAll(ctx context.Context, statement string, args ...any) error {
	return each(ctx, f.tx, func(scan func(...any) error) error {
		var run int64
		err := scan(&run)
		f.moved[run] = true
		return err
	}, statement, args...)
}

// First bytes of column "of": a checkpoint's name or the context of a summary follows.
const (
	ofCheckpoint = 'k'
	ofSummary    = 's'
)

// settleContext stores the tip of a context. What is kept beside messages is not found.
func (f *writer) settleContext(ctx context.Context, id structure.ContextID) error {
	if err := f.moveAll(ctx, `SELECT run FROM tips WHERE id = ?`, id[:]); err != nil {
		return err
	}
	if err := f.exec(ctx, `DELETE FROM tips WHERE id = ?`, id[:]); err != nil {
		return err
	}
	c, err := f.snapshot.Context(ctx, id)
	if isGone(err) {
		return nil
	}
	if err != nil || lineage.BesideMessages(c.Metadata) {
		return err
	}
	return f.see(ctx, id, c.Thread, c.Tip, nil)
}

// see adds a tip.
func (f *writer) see(ctx context.Context, id [16]byte, thread structure.ThreadID, at structure.SpanRef, of []byte) error {
	if at.IsZero() {
		return nil
	}
	home, err := f.home(ctx, thread)
	if err != nil {
		return err
	}
	run, err := f.indexed(ctx, at.Run)
	if err != nil || run == 0 { // the window with the run has the subject again
		return err
	}
	f.moved[run] = true
	return f.exec(ctx, `INSERT OR REPLACE INTO tips (id, thread, run, seq, of) VALUES (?, ?, ?, ?, ?)`, id[:], home, run, int64(at.Seq), of)
}

// settleCheckpoint stores the span of a checkpoint.
func (f *writer) settleCheckpoint(ctx context.Context, name derived.Name) error {
	thread, of := name.Thread, append([]byte{ofCheckpoint}, name.Name...)
	const those = ` FROM tips WHERE of = ? AND thread IN (SELECT number FROM threads WHERE id = ?)`
	if err := f.moveAll(ctx, `SELECT run`+those, of, thread[:]); err != nil {
		return err
	}
	if err := f.exec(ctx, `DELETE`+those, of, thread[:]); err != nil {
		return err
	}
	c, err := f.snapshot.Checkpoint(ctx, thread, name.Name)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.see(ctx, c.ID, thread, c.Span, of)
}

// settleSummaries stores the summaries of a context. Each is a run with one step that the context
// sees.
func (f *writer) settleSummaries(ctx context.Context, id structure.ContextID) error {
	of := append([]byte{ofSummary}, id[:]...)
	if err := f.moveAll(ctx, `SELECT run FROM tips WHERE of = ?`, of); err != nil {
		return err
	}
	if err := f.exec(ctx, `DELETE FROM tips WHERE of = ?`, of); err != nil {
		return err
	}
	c, err := f.snapshot.Context(ctx, id)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for r, err := range f.snapshot.Summaries(ctx, id) {
		if err != nil {
			return err
		}
		run := structure.RunID(r.ID)
		if err := f.addSummary(ctx, run, r); err != nil {
			return err
		}
		if err := f.see(ctx, r.ID, c.Thread, structure.SpanRef{Run: run, Seq: 1}, of); err != nil {
			return err
		}
	}
	return nil
}

func (f *writer) addSummary(ctx context.Context, run structure.RunID, r *structure.Summary) error {
	var n int64
	is, err := f.get(ctx, `SELECT number FROM runs WHERE id = ?`, []any{run[:]}, &n)
	if err == nil && !is {
		if n, err = f.newRun(ctx, run, 0, 0, 0); err == nil {
			err = f.exec(ctx, `UPDATE runs SET last = 1 WHERE number = ?`, n)
		}
	}
	if err != nil {
		return err
	}
	at := usage{run: n, seq: 1}
	if at.role, err = f.roleNumber(ctx, role{kind: summary}); err != nil {
		return err
	}
	b, err := blockIn(ctx, f.snapshot, r.Content)
	if b == nil {
		return err
	}
	text, err := f.known(ctx, textOf(r.Content, form.Plain), func() (string, error) { return readText(ctx, f.snapshot, summary, b, form.Plain) })
	if err != nil {
		return err
	}
	return f.use(ctx, at, text)
}

// settleContent removes erased texts from the index, and adds those that were stored again.
func (f *writer) settleContent(ctx context.Context, id [32]byte) error {
	b, err := blockIn(ctx, f.snapshot, id)
	if err != nil {
		return err
	}
	if err := f.exec(ctx, `DELETE FROM erased WHERE id = ?`, id[:]); err != nil {
		return err
	}
	for _, r := range readings {
		of := textOf(id, r)
		var text int64
		if is, err := f.get(ctx, `SELECT number FROM texts WHERE id = ?`, []any{of[:]}, &text); err != nil || !is {
			if err != nil {
				return err
			}
			continue
		}
		if err := f.exec(ctx, `DELETE FROM terms WHERE rowid = ?`, text); err != nil {
			return err
		}
		if err := f.forget(ctx, text); err != nil {
			return err
		}
		if b == nil {
			continue
		}
		said, err := readText(ctx, f.snapshot, structure.PartUsage, b, r)
		if err != nil {
			return err
		}
		terms, _ := f.terms(said)
		if err := f.exec(ctx, `INSERT INTO terms (rowid, words) VALUES (?, ?)`, text, terms); err != nil {
			return err
		}
		if err := f.pend(ctx, of, text); err != nil {
			return err
		}
	}
	if b == nil {
		return f.exec(ctx, `INSERT INTO erased VALUES (?)`, id[:])
	}
	return f.restore(ctx, id)
}

// restore adds the usages of content that was stored again, including those added while it was
// erased.
func (f *writer) restore(ctx context.Context, id [32]byte) error {
	for u, err := range f.snapshot.Where(ctx, id) {
		if err != nil {
			return err
		}
		run, err := f.indexed(ctx, u.Span.Run)
		if err != nil {
			return err
		}
		if run == 0 {
			continue
		}
		for step, err := range f.snapshot.Path(ctx, u.Span, structure.Window{Last: 1}, backend.PathOptions{Bodies: true}) {
			if err != nil {
				return err
			}
			blocks := make(map[[32]byte]*structure.Block, len(step.Blocks))
			for _, b := range step.Blocks {
				blocks[b.ID] = b
			}
			if err := f.addUsages(ctx, run, step.Span, blocks); err != nil {
				return err
			}
		}
	}
	all, err := f.blobs(ctx, `SELECT DISTINCT of FROM tips WHERE of >= ? AND of < ?`, []byte{ofSummary}, []byte{ofSummary + 1})
	for _, of := range all {
		if len(of) != 17 {
			return fmt.Errorf("summaries of context %x: %w", of, errUseless)
		}
		f.changes.Context(structure.ContextID(of[1:]), derived.ContextChange{Summarized: true})
	}
	return err
}

// reach updates column reached of moved runs and of the runs before them.
func (f *writer) reach(ctx context.Context) error {
	for len(f.moved) > 0 {
		next := make(map[int64]bool)
		for run := range f.moved {
			var was, is, parent int64
			found, err := f.get(ctx, `SELECT r.reached, r.parent, MAX(
				IFNULL((SELECT ? FROM threads t WHERE t.number = r.thread AND t.keeps), 0),
				IFNULL((SELECT MAX(p.seq) FROM tips p WHERE p.run = r.number), 0),
				IFNULL((SELECT MAX(c.after) FROM runs c WHERE c.parent = r.number AND c.parent > 0 AND c.reached > 0), 0))
				FROM runs r WHERE r.number = ?`, []any{int64(forever), run}, &was, &parent, &is)
			if err != nil {
				return err
			}
			if !found || was == is {
				continue
			}
			if err := f.exec(ctx, `UPDATE runs SET reached = ? WHERE number = ?`, is, run); err != nil {
				return err
			}
			if parent > 0 && (was > 0) != (is > 0) {
				next[parent] = true
			}
		}
		f.moved = next
	}
	return nil
}
