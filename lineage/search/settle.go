package search

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// settling indexes the current state of subjects that commits changed, after all commits are added.
type settling struct {
	*follower
	homes map[structure.ThreadID]int64 // of threads that exist
	moved map[int64]bool               // runs whose reached may change
}

// settle updates threads, contexts, checkpoints, summaries and erased content to their state in the
// snapshot.
func (f *follower) settle(ctx context.Context) error {
	s := &settling{follower: f, homes: make(map[structure.ThreadID]int64), moved: make(map[int64]bool)}
	// The order matters: threads add changed contexts and checkpoints, content adds changed
	// summaries.
	for _, kind := range []byte{changedThread, changedContext, changedCheckpoint, changedContent, changedSummaries} {
		subjects, err := s.subjects(ctx, kind)
		if err != nil {
			return err
		}
		for _, subject := range subjects {
			if err := s.subject(ctx, kind, subject); err != nil {
				return err
			}
		}
	}
	f.changed = nil
	if err := f.exec(ctx, `DELETE FROM changed`); err != nil {
		return err
	}
	return s.reach(ctx)
}

// subjects returns the changed subjects of a kind.
func (s *settling) subjects(ctx context.Context, kind byte) ([][]byte, error) {
	for subject := range s.changed {
		if subject[0] == kind {
			if err := s.exec(ctx, `INSERT OR IGNORE INTO changed VALUES (?)`, []byte(subject)); err != nil {
				return nil, err
			}
		}
	}
	return s.blobs(ctx, `SELECT subject FROM changed WHERE subject >= ? AND subject < ?`, []byte{kind}, []byte{kind + 1})
}

// blobs returns the values of a column.
func (s *settling) blobs(ctx context.Context, statement string, args ...any) (all [][]byte, err error) {
	err = each(ctx, s.tx, func(scan func(...any) error) error {
		var b []byte
		err := scan(&b)
		all = append(all, b)
		return err
	}, statement, args...)
	return all, err
}

// subject settles a subject, whose first byte is its kind.
func (s *settling) subject(ctx context.Context, kind byte, subject []byte) error {
	id := subject[1:]
	if len(id) < 16 {
		return fmt.Errorf("subject %x: %w", subject, errUseless)
	}
	switch kind {
	case changedThread:
		return s.settleThread(ctx, structure.ThreadID(id))
	case changedContext:
		return s.settleContext(ctx, structure.ContextID(id))
	case changedCheckpoint:
		return s.settleCheckpoint(ctx, structure.ThreadID(id[:16]), id[16:])
	case changedSummaries:
		return s.settleSummaries(ctx, structure.ContextID(id))
	}
	if len(id) != 32 {
		return fmt.Errorf("content %x: %w", id, errUseless)
	}
	return s.settleContent(ctx, [32]byte(id))
}

// home returns the number of an existing thread, 0 if there is none.
func (s *settling) home(ctx context.Context, id structure.ThreadID) (int64, error) {
	if n, known := s.homes[id]; known || id.IsZero() {
		return n, nil
	}
	t, err := s.snapshot.Thread(ctx, id)
	n := int64(0)
	if err == nil {
		n, err = s.threadNumber(ctx, t.Home())
	} else if isGone(err) {
		err = nil
	}
	s.homes[id] = n
	return n, err
}

func isGone(err error) bool { return errors.Is(err, lineage.ErrNotFound) }

// settleThread stores the user of a thread and whether it keeps its runs. If the thread is gone,
// everything in it is marked as changed.
func (s *settling) settleThread(ctx context.Context, id structure.ThreadID) error {
	is, err := s.home(ctx, id)
	if err != nil {
		return err
	}
	if is != 0 {
		t, err := s.snapshot.Thread(ctx, id)
		if err != nil {
			return err
		}
		if err := s.exec(ctx, `UPDATE threads SET user = ?, keeps = ? WHERE number = ?`, t.UserID, t.Keeps, is); err != nil {
			return err
		}
	}
	if err := s.moveAll(ctx, `SELECT r.number FROM runs r JOIN threads t ON t.number = r.thread WHERE t.id = ?`, id[:]); err != nil {
		return err
	}
	gone, err := s.blobs(ctx, `SELECT p.id FROM threads t JOIN tips p ON p.thread = t.number WHERE t.id = ? AND t.number <> ? AND p.of IS NULL`, id[:], is)
	if err != nil {
		return err
	}
	for _, context := range gone {
		s.note(changedContext, context)
		s.note(changedSummaries, context)
	}
	err = s.moveAll(ctx, `SELECT p.run FROM threads t JOIN tips p ON p.thread = t.number WHERE t.id = ? AND t.number <> ?`, id[:], is)
	if err != nil {
		return err
	}
	err = s.exec(ctx, `DELETE FROM tips WHERE thread IN (SELECT number FROM threads WHERE id = ? AND number <> ?)`, id[:], is)
	if err != nil {
		return err
	}
	return s.exec(ctx, `UPDATE threads SET keeps = 0 WHERE id = ? AND number <> ?`, id[:], is)
}

// moveAll marks runs as moved.
func (s *settling) moveAll(ctx context.Context, statement string, args ...any) error {
	return each(ctx, s.tx, func(scan func(...any) error) error {
		var run int64
		err := scan(&run)
		s.moved[run] = true
		return err
	}, statement, args...)
}

// First bytes of column "of": a checkpoint's name or the context of a summary follows.
const (
	ofCheckpoint = 'k'
	ofSummary    = 's'
)

// settleContext stores the tip of a context.
func (s *settling) settleContext(ctx context.Context, id structure.ContextID) error {
	if err := s.moveAll(ctx, `SELECT run FROM tips WHERE id = ?`, id[:]); err != nil {
		return err
	}
	if err := s.exec(ctx, `DELETE FROM tips WHERE id = ?`, id[:]); err != nil {
		return err
	}
	c, err := s.snapshot.Context(ctx, id)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.see(ctx, id, c.Thread, c.Tip, nil)
}

// see adds a tip.
func (s *settling) see(ctx context.Context, id [16]byte, thread structure.ThreadID, at structure.SpanRef, of []byte) error {
	if at.IsZero() {
		return nil
	}
	home, err := s.home(ctx, thread)
	if err != nil {
		return err
	}
	run, err := s.runNumber(ctx, at.Run)
	if err != nil {
		return err
	}
	s.moved[run] = true
	return s.exec(ctx, `INSERT OR REPLACE INTO tips (id, thread, run, seq, of) VALUES (?, ?, ?, ?, ?)`, id[:], home, run, int64(at.Seq), of)
}

// settleCheckpoint stores the span of a checkpoint.
func (s *settling) settleCheckpoint(ctx context.Context, thread structure.ThreadID, name []byte) error {
	of := append([]byte{ofCheckpoint}, name...)
	const those = ` FROM tips WHERE of = ? AND thread IN (SELECT number FROM threads WHERE id = ?)`
	if err := s.moveAll(ctx, `SELECT run`+those, of, thread[:]); err != nil {
		return err
	}
	if err := s.exec(ctx, `DELETE`+those, of, thread[:]); err != nil {
		return err
	}
	c, err := s.snapshot.Checkpoint(ctx, thread, string(name))
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.see(ctx, c.ID, thread, c.Span, of)
}

// settleSummaries stores the summaries of a context. Each is a run with one step that the context
// sees.
func (s *settling) settleSummaries(ctx context.Context, id structure.ContextID) error {
	of := append([]byte{ofSummary}, id[:]...)
	if err := s.moveAll(ctx, `SELECT run FROM tips WHERE of = ?`, of); err != nil {
		return err
	}
	if err := s.exec(ctx, `DELETE FROM tips WHERE of = ?`, of); err != nil {
		return err
	}
	c, err := s.snapshot.Context(ctx, id)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for r, err := range s.snapshot.Summaries(ctx, id) {
		if err != nil {
			return err
		}
		run := structure.RunID(r.ID)
		if err := s.addSummary(ctx, run, r); err != nil {
			return err
		}
		if err := s.see(ctx, r.ID, c.Thread, structure.SpanRef{Run: run, Seq: 1}, of); err != nil {
			return err
		}
	}
	return nil
}

func (s *settling) addSummary(ctx context.Context, run structure.RunID, r *structure.Summary) error {
	var n int64
	is, err := s.get(ctx, `SELECT number FROM runs WHERE id = ?`, []any{run[:]}, &n)
	if err == nil && !is {
		if n, err = s.newRun(ctx, run, 0, 0, 0); err == nil {
			err = s.exec(ctx, `UPDATE runs SET last = 1 WHERE number = ?`, n)
		}
	}
	if err != nil {
		return err
	}
	at := usage{run: n, seq: 1}
	if at.role, err = s.roleNumber(ctx, role{kind: summary}); err != nil {
		return err
	}
	b, err := blockIn(ctx, s.snapshot, r.Content)
	if b == nil {
		return err
	}
	text, err := s.known(ctx, textOf(r.Content, form.Plain), func() (string, error) { return readText(ctx, s.snapshot, summary, b, form.Plain) })
	if err != nil {
		return err
	}
	return s.use(ctx, at, text)
}

// settleContent removes erased texts from the index, and adds those that were stored again.
func (s *settling) settleContent(ctx context.Context, id [32]byte) error {
	b, err := blockIn(ctx, s.snapshot, id)
	if err != nil {
		return err
	}
	if err := s.exec(ctx, `DELETE FROM erased WHERE id = ?`, id[:]); err != nil {
		return err
	}
	for _, r := range readings {
		of := textOf(id, r)
		var text int64
		if is, err := s.get(ctx, `SELECT number FROM texts WHERE id = ?`, []any{of[:]}, &text); err != nil || !is {
			if err != nil {
				return err
			}
			continue
		}
		if err := s.exec(ctx, `DELETE FROM terms WHERE rowid = ?`, text); err != nil {
			return err
		}
		if err := s.forget(ctx, text); err != nil {
			return err
		}
		if b == nil {
			continue
		}
		said, err := readText(ctx, s.snapshot, structure.PartUsage, b, r)
		if err != nil {
			return err
		}
		terms, _ := s.terms(said)
		if err := s.exec(ctx, `INSERT INTO terms (rowid, words) VALUES (?, ?)`, text, terms); err != nil {
			return err
		}
		if err := s.pend(ctx, of, text); err != nil {
			return err
		}
	}
	if b == nil {
		return s.exec(ctx, `INSERT INTO erased VALUES (?)`, id[:])
	}
	return s.restore(ctx, id)
}

// restore adds the usages of content that was stored again, including those added while it was
// erased.
func (s *settling) restore(ctx context.Context, id [32]byte) error {
	for u, err := range s.snapshot.Where(ctx, id) {
		if err != nil {
			return err
		}
		run, err := s.runNumber(ctx, u.Span.Run)
		if err != nil {
			return err
		}
		for step, err := range s.snapshot.Path(ctx, u.Span, structure.Window{Last: 1}, backend.PathOptions{Bodies: true}) {
			if err != nil {
				return err
			}
			blocks := make(map[[32]byte]*structure.Block, len(step.Blocks))
			for _, b := range step.Blocks {
				blocks[b.ID] = b
			}
			if err := s.addUsages(ctx, run, step.Span, blocks); err != nil {
				return err
			}
		}
	}
	all, err := s.blobs(ctx, `SELECT DISTINCT of FROM tips WHERE of >= ? AND of < ?`, []byte{ofSummary}, []byte{ofSummary + 1})
	for _, of := range all {
		s.note(changedSummaries, of[1:])
	}
	return err
}

// reach updates column reached of moved runs and of the runs before them.
func (s *settling) reach(ctx context.Context) error {
	for len(s.moved) > 0 {
		next := make(map[int64]bool)
		for run := range s.moved {
			var was, is, parent int64
			found, err := s.get(ctx, `SELECT r.reached, r.parent, MAX(
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
			if err := s.exec(ctx, `UPDATE runs SET reached = ? WHERE number = ?`, is, run); err != nil {
				return err
			}
			if parent > 0 && (was > 0) != (is > 0) {
				next[parent] = true
			}
		}
		s.moved = next
	}
	return nil
}
