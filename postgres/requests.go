package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Outcome implements backend.Engine. An outcome is durable if commits are by default: the one who made the commit may still
// wait for that.
func (e *Engine) Outcome(ctx context.Context, o backend.Once) (r backend.Receipt, err error) {
	if err := o.Valid(); err != nil {
		return r, err
	}
	n := keysNeed(keys.Of(keys.TableRequests, o.Session[:]), keys.Of(keys.TableRequests))
	err = e.withReader(ctx, n, func(t *stateReader) error {
		r, err = e.outcome(ctx, t, o)
		return err
	})
	return r, err
}

// outcome looks up a request in a state.
func (e *Engine) outcome(ctx context.Context, t *stateReader, o backend.Once) (backend.Receipt, error) {
	number, err := applied(t, &o, func(c backend.Cursor) error { return e.log.checkCursor(ctx, c) })
	if err == nil && number == 0 {
		err = fmt.Errorf("request %d of session %x: %w", o.Sequence, o.Session, backend.ErrNotFound)
	}
	if err != nil {
		return backend.Receipt{}, err
	}
	at, err := e.log.cursorOf(ctx, number)
	if err == nil && e.o.Durability == backend.Full {
		if err = e.flush(ctx, t.cache, t.state.head); errors.Is(err, errDiverged) {
			err = errGone // so that it is looked up again
		}
	}
	return backend.Receipt{Cursor: at, Repeated: true}, err
}

// Forget implements backend.Engine.
func (e *Engine) Forget(ctx context.Context, id [16]byte) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if e.closed.Load() {
		return errClosed
	}
	e.warm = nil
	return withRetry(ctx, func(ctx context.Context) error { // to forget twice is harmless
		for range mostRetries {
			if err := e.forgetOnce(ctx, id); !errors.Is(err, errDiverged) && !errors.Is(err, errBehind) {
				return err
			}
		}
		return errDiverged
	})
}

func (e *Engine) forgetOnce(ctx context.Context, id [16]byte) error {
	t, tx, err := e.lock(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.rollback()
	gone, err := forgotten(t, func(key string, _ session) bool { return key[1:] == string(id[:]) }, 0)
	if err != nil || len(gone) == 0 {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	var b pgx.Batch
	queueDurability(&b, backend.Normal)
	var former [][]byte
	for _, change := range gone { // a version of this state may be there
		b.Queue(`INSERT INTO lineage_entry (store, epoch, key, age, value) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (store, epoch, key, age) DO UPDATE SET value = excluded.value`,
			e.log.store, int64(t.state.epoch), change.Key, -int64(t.state.Number), change.Value)
		former = append(former, change.Key)
	}
	b.Queue(`INSERT INTO lineage_former (store, epoch, n, part, keys) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (store, epoch, n, part) DO NOTHING`,
		e.log.store, int64(t.state.epoch), int64(t.state.Number), -1-int32(t.state.forgets%(1<<30)), former)
	b.Queue(`UPDATE lineage_head SET forgets = forgets + 1 WHERE store = $1 AND epoch = $2`, e.log.store, int64(t.state.epoch)) // whoever judged before has another horizon
	return tx.commit(limited, &b)
}
