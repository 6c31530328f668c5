package derivedfile

import (
	"context"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// Thread returns a thread of the snapshot, which is read once and must not be changed.
func (f *Writer) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return once(f.threads, id, func() (*structure.Thread, error) { return f.Snapshot.Thread(ctx, id) })
}

// Context returns a context of the snapshot, which is read once and must not be changed.
func (f *Writer) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	return once(f.contexts, id, func() (backend.Context, error) { return f.Snapshot.Context(ctx, id) })
}

// once returns what is known of a key, or else reads it.
func once[K comparable, V any](known map[K]V, key K, read func() (V, error)) (V, error) {
	if value, ok := known[key]; ok {
		return value, nil
	}
	value, err := read()
	if err == nil {
		known[key] = value
	}
	return value, err
}

// home returns the number of an existing thread, 0 if there is none.
func (f *Writer) home(ctx context.Context, id structure.ThreadID) (int64, error) {
	if n, known := f.homes[id]; known || id.IsZero() {
		return n, nil
	}
	t, err := f.Thread(ctx, id)
	n := int64(0)
	if err == nil {
		n, err = f.ThreadNumber(ctx, t.Home())
	} else if IsGone(err) {
		err = nil
	}
	f.homes[id] = n
	return n, err
}

// Settle updates threads, contexts and checkpoints to their state in the snapshot.
func (f *Writer) Settle(ctx context.Context) error {
	for id := range f.Changes.Threads { // adds changed contexts
		if err := f.settleThread(ctx, id); err != nil {
			return err
		}
	}
	for id, change := range f.Changes.Contexts {
		if change.Stated || change.Moved {
			if err := f.settleContext(ctx, id); err != nil {
				return err
			}
		}
	}
	for name := range f.Changes.Checkpoints {
		if err := f.settleCheckpoint(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// RunsOfThread is a query for the runs of all threads with an id. Without its last condition, SQLite would read all runs: that is the
// condition of the index that it needs.
const RunsOfThread = `SELECT r.number FROM threads t JOIN runs r ON r.thread = t.number WHERE t.id = ? AND r.thread > 0`

// settleThread stores the user of a thread and whether it keeps its runs. If the thread is gone,
// everything in it is marked as changed.
func (f *Writer) settleThread(ctx context.Context, id structure.ThreadID) error {
	number, err := f.home(ctx, id)
	if err != nil {
		return err
	}
	if number != 0 {
		t, err := f.Thread(ctx, id)
		if err != nil {
			return err
		}
		isNew := f.IsNew(id)
		if !isNew || t.UserID != "" || t.Keeps {
			if err := f.Exec(ctx, `UPDATE threads SET user = ?, keeps = ? WHERE number = ?`, t.UserID, t.Keeps, number); err != nil {
				return err
			}
		}
		if isNew {
			return nil // its runs are of this window, and it has no earlier incarnation
		}
	}
	if err := f.MoveAll(ctx, RunsOfThread, id[:]); err != nil {
		return err
	}
	gone, err := f.Blobs(ctx, `SELECT p.id FROM threads t JOIN tips p ON p.thread = t.number WHERE t.id = ? AND t.number <> ? AND p.of IS NULL`, id[:], number)
	if err != nil {
		return err
	}
	for _, context := range gone {
		if len(context) != 16 {
			return fmt.Errorf("context %x: %w", context, ErrUseless)
		}
		f.Changes.Context(structure.ContextID(context), derived.ContextChange{Stated: true})
	}
	err = f.MoveAll(ctx, `SELECT p.run FROM threads t JOIN tips p ON p.thread = t.number WHERE t.id = ? AND t.number <> ?`, id[:], number)
	if err != nil {
		return err
	}
	err = f.Exec(ctx, `DELETE FROM tips WHERE thread IN (SELECT number FROM threads WHERE id = ? AND number <> ?)`, id[:], number)
	if err != nil {
		return err
	}
	return f.Exec(ctx, `UPDATE threads SET keeps = 0, user = '' WHERE id = ? AND number <> ?`, id[:], number)
}

// MoveAll marks runs as moved.
func (f *Writer) MoveAll(ctx context.Context, statement string, args ...any) error {
	return f.Each(ctx, func(scan func(...any) error) error {
		var run int64
		err := scan(&run)
		f.moved[run] = true
		return err
	}, statement, args...)
}

// OfCheckpoint is the first byte of column "of" for a checkpoint. Its name follows. Callers have others.
const OfCheckpoint = 'k'

// settleContext stores the tip of a context.
func (f *Writer) settleContext(ctx context.Context, id structure.ContextID) error {
	var run int64
	was, err := f.Get(ctx, `SELECT run FROM tips WHERE id = ?`, []any{id[:]}, &run)
	if err != nil {
		return err
	}
	if was {
		f.moved[run] = true
		if err := f.Exec(ctx, `DELETE FROM tips WHERE id = ?`, id[:]); err != nil {
			return err
		}
	}
	c, err := f.Context(ctx, id)
	if IsGone(err) {
		return nil
	}
	if err != nil || f.Sees != nil && !f.Sees(c.Metadata) {
		return err
	}
	return f.seeStep(ctx, id[:], c.Thread, c.Tip, nil)
}

func (f *Writer) seeStep(ctx context.Context, key []byte, thread structure.ThreadID, at structure.SpanRef, owner []byte) error {
	if at.IsZero() {
		return nil
	}
	run, err := f.Indexed(ctx, at.Run)
	if err != nil || run == 0 { // the window with the run has the subject again
		return err
	}
	return f.See(ctx, key, thread, run, at.Seq, owner)
}

// See adds a tip: a step of a run. The key of a context is its id. Those of others are longer, because ids of one kind may
// be those of another.
func (f *Writer) See(ctx context.Context, key []byte, thread structure.ThreadID, run int64, seq uint64, owner []byte) error {
	home, err := f.home(ctx, thread)
	if err != nil {
		return err
	}
	f.moved[run] = true
	return f.Exec(ctx, `INSERT OR REPLACE INTO tips (id, thread, run, seq, of) VALUES (?, ?, ?, ?, ?)`, key, home, run, int64(seq), owner)
}

// settleCheckpoint stores the span of a checkpoint.
func (f *Writer) settleCheckpoint(ctx context.Context, name derived.Name) error {
	thread, owner := name.Thread, append([]byte{OfCheckpoint}, name.Name...)
	const those = ` FROM tips WHERE of = ? AND thread IN (SELECT number FROM threads WHERE id = ?)`
	if err := f.MoveAll(ctx, `SELECT run`+those, owner, thread[:]); err != nil {
		return err
	}
	if err := f.Exec(ctx, `DELETE`+those, owner, thread[:]); err != nil {
		return err
	}
	c, err := f.Snapshot.Checkpoint(ctx, thread, name.Name)
	if IsGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.seeStep(ctx, slices.Concat([]byte{OfCheckpoint}, thread[:], []byte(name.Name)), thread, c.Span, owner)
}

// Reach updates column reached of moved runs and of the runs before them.
func (f *Writer) Reach(ctx context.Context) error {
	for len(f.moved) > 0 {
		next := make(map[int64]bool)
		for run := range f.moved {
			var was, reached, parent int64
			found, err := f.Get(ctx, `SELECT r.reached, r.parent, MAX(
				IFNULL((SELECT ? FROM threads t WHERE t.number = r.thread AND t.keeps), 0),
				IFNULL((SELECT MAX(p.seq) FROM tips p WHERE p.run = r.number), 0),
				IFNULL((SELECT MAX(c.after) FROM runs c WHERE c.parent = r.number AND c.parent > 0 AND c.reached > 0), 0))
				FROM runs r WHERE r.number = ?`, []any{int64(Forever), run}, &was, &parent, &reached)
			if err != nil {
				return err
			}
			if !found || was == reached {
				continue
			}
			if err := f.Exec(ctx, `UPDATE runs SET reached = ? WHERE number = ?`, reached, run); err != nil {
				return err
			}
			if f.Reached != nil {
				if err := f.Reached(ctx, run, was, reached); err != nil {
					return err
				}
			}
			if parent > 0 && (was > 0) != (reached > 0) {
				next[parent] = true
			}
		}
		f.moved = next
	}
	return nil
}
