package derivedfile

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// Updating configures an update.
type Updating struct {
	// Apply applies a window with its commits.
	Apply func(ctx context.Context, w *derived.Window[*sql.Tx]) error
	// Limit, Progress and Until are those of derived.Follower.
	Limit    int
	Progress func(done, total uint64)
	Until    time.Time
	// MostBehind, when not zero, is for data that only has what it was asked for. A new file starts at the last commit. One that is more
	// commits behind is emptied by Empty and starts there again.
	MostBehind uint64
	Empty      func(context.Context, *sql.Tx) error
}

// follow brings the data of a file to the current state of the store.
func follow(ctx context.Context, store *lineage.Store, db *sql.DB, u Updating) error {
	t := &target{db, u.Apply}
	if u.MostBehind > 0 {
		if err := t.skip(ctx, store, u); err != nil {
			return err
		}
	}
	f := derived.Follower[*sql.Tx]{Store: store, Target: t, Commits: true, Limit: u.Limit, Progress: u.Progress, Until: u.Until}
	_, err := f.Run(ctx)
	return err
}

// skip empties data that is too far behind, and marks it as up to date. Data of another store is left to the follower.
func (t *target) skip(ctx context.Context, store *lineage.Store, u Updating) error {
	head, err := store.View().Head(ctx)
	if err != nil {
		return err
	}
	was, err := t.Mark(ctx)
	if err != nil {
		return err
	}
	if was.Version > 0 && (was.Store != store.ID() || head.Number <= was.At.Number+u.MostBehind) {
		return nil
	}
	now := derived.Mark{Store: store.ID(), At: head, Seen: head, Version: was.Version + 1}
	return t.Write(ctx, func(tx *sql.Tx) error {
		swapped, err := t.Swap(ctx, tx, was, now)
		if err != nil || !swapped { // another process was faster
			return err
		}
		return u.Empty(ctx, tx)
	})
}

// target implements derived.Target for the file.
type target struct {
	db    *sql.DB
	apply func(ctx context.Context, w *derived.Window[*sql.Tx]) error
}

// Apply implements derived.Target.
func (t *target) Apply(ctx context.Context, w *derived.Window[*sql.Tx]) error { return t.apply(ctx, w) }

// Mark implements derived.Target.
func (t *target) Mark(ctx context.Context) (m derived.Mark, err error) {
	var store []byte
	var at, id, seen, seenID int64
	err = t.db.QueryRowContext(ctx, `SELECT store, number, id, seen_number, seen_id, version FROM meta`).Scan(&store, &at, &id, &seen, &seenID, &m.Version)
	if err == nil && len(store) != len(m.Store) {
		err = fmt.Errorf("store %x: %w", store, ErrUseless)
	}
	if err != nil {
		return m, err
	}
	m.Store = structure.StoreID(store)
	m.At = lineage.Cursor{Number: uint64(at), ID: uint64(id)}
	m.Seen = lineage.Cursor{Number: uint64(seen), ID: uint64(seenID)}
	return m, nil
}

// Write implements derived.Target.
func (t *target) Write(ctx context.Context, do func(*sql.Tx) error) error {
	return Patiently(ctx, func() error {
		tx, err := t.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := do(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// Swap implements derived.Target.
func (t *target) Swap(ctx context.Context, tx *sql.Tx, was, now derived.Mark) (bool, error) {
	changed, err := tx.ExecContext(ctx, `UPDATE meta SET store = ?, number = ?, id = ?, seen_number = ?, seen_id = ?, version = ? WHERE version = ?`,
		now.Store[:], int64(now.At.Number), int64(now.At.ID), int64(now.Seen.Number), int64(now.Seen.ID), now.Version, was.Version)
	if err != nil {
		return false, err
	}
	n, err := changed.RowsAffected()
	return n == 1, err
}
