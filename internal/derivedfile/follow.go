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
	// Limit, Progress and Until are those of derived.Follower. After Until, other processes that write are not waited for.
	Limit    int
	Progress func(done, total uint64)
	Until    time.Time
}

// follow brings the data of a file to the current state of the store.
func follow(ctx context.Context, store *lineage.Store, db *sql.DB, u Updating) error {
	f := derived.Follower[*sql.Tx]{Store: store, Target: &target{db: db, apply: u.Apply, until: u.Until}, Commits: true, Limit: u.Limit, Progress: u.Progress, Until: u.Until}
	_, err := f.Run(ctx)
	if isBusy(err) && !u.Until.IsZero() && !time.Now().Before(u.Until) { // another process writes
		return derived.ErrUnfinished
	}
	return err
}

// target implements derived.Target for the file.
type target struct {
	db    *sql.DB
	apply func(ctx context.Context, w *derived.Window[*sql.Tx]) error
	prune func(ctx context.Context, w *derived.Window[*sql.Tx]) error // for windows with Prune
	until time.Time                                                   // when not to wait any more for another process, if not zero
}

// Apply implements derived.Target.
func (t *target) Apply(ctx context.Context, w *derived.Window[*sql.Tx]) error {
	if w.Prune {
		return t.prune(ctx, w)
	}
	return t.apply(ctx, w)
}

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
	return patientlyUntil(ctx, t.until, func() error {
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
