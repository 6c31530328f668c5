package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
)

// publication decides a collection.
type publication struct {
	*Engine
	survey *embedded.Survey // finds what is in use
	copied *logCopy
	next   *filling // makes the entries of the next epoch
	report *backend.CollectReport
}

// maxLive is the largest size of the list of what a collection leaves, in bytes. Tests make it smaller.
var maxLive = maxRow

// publish makes the entries of the next epoch, and decides the collection. It is errBehind if it has to be repeated: what
// was found dead is in use again, or the epoch is another one.
func (p *publication) publish(ctx context.Context) error {
	if err := p.next.fillTo(ctx, p.copied.at.Number, nil); err != nil {
		return err
	}
	for range mostRetries { // to have little to do while the store is held
		from := p.copied.at.Number
		if err := p.catchUp(ctx); err != nil {
			return err
		}
		if p.copied.at.Number <= from+fewCommits {
			break
		}
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	reader, tx, err := p.lock(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.rollback()
	return p.decide(ctx, reader.state, tx)
}

// catchUp brings the copy of the log, what is in use, and the entries up to date.
func (p *publication) catchUp(ctx context.Context) error {
	if err := p.copied.follow(ctx, nil); err != nil {
		return err
	}
	if err := p.survey.Follow(); err != nil {
		return err
	}
	if p.survey.Revived() {
		return fmt.Errorf("what was found unused is in use again: %w", errBehind)
	}
	return p.next.fillTo(ctx, p.copied.at.Number, nil)
}

// decide publishes what is in use in a state. The transaction locks the state.
func (p *publication) decide(ctx context.Context, st state, t *writeTx) error {
	if st.epoch != p.copied.at.epoch {
		return errBehind
	}
	if err := p.catchUp(ctx); err != nil {
		return err
	}
	if p.copied.at.Cursor != st.Cursor || p.next.at.Cursor != st.Cursor {
		return errBehind
	}
	set := p.survey.LiveSet()
	p.report.Commit = set.Until
	live, err := set.Encode(p.log.identity)
	if err == nil && len(live) > maxLive {
		err = fmt.Errorf("the list of what is in use takes %d bytes, at most %d: %w", len(live), maxLive, backend.ErrTooLarge)
	}
	if err != nil {
		return err
	}
	p.warm = nil
	limited, cancel := context.WithTimeout(ctx, writeTime)
	err = t.publish(limited, p.next.epoch, st.epoch, live)
	cancel()
	if !errors.Is(err, errBehind) && (mayHaveWritten(err) || isTransient(err)) {
		err = p.resolve(ctx, st, err)
	}
	return err
}

// resolve finds out whether a collection was decided by a transaction that failed.
func (p *publication) resolve(ctx context.Context, before state, failed error) error {
	epoch, err := p.log.settledEpoch(context.WithoutCancel(ctx), before.head)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", backend.ErrUncertain, errors.Join(failed, err))
	case epoch != before.epoch: // perhaps of a later collection
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return errBehind
}

// publish stores the list of what is in use and ends the transaction. After an error it may have been stored.
// It is errBehind while the collection of the epoch is pending.
func (t *writeTx) publish(ctx context.Context, epoch, former uint64, live []byte) error {
	var b pgx.Batch
	queueDurability(&b, backend.Full)
	b.Queue(`SELECT 1 / (1 - count(*)) FROM lineage_collection WHERE store = $1 AND epoch = $2`, t.log.store, int64(former))
	b.Queue(`INSERT INTO lineage_collection AS c (store, epoch, live, entries) VALUES ($1, $2, $3, true) ON CONFLICT (store) DO UPDATE SET epoch = excluded.epoch, live = excluded.live`,
		t.log.store, int64(epoch), live)
	b.Queue(`UPDATE lineage_store SET epoch = $2 WHERE store = $1`, t.log.store, int64(epoch))
	return t.commit(ctx, &b)
}

// settledEpoch waits until nobody is changing the epoch, makes it durable and returns it.
func (l *log) settledEpoch(ctx context.Context, h head) (current uint64, err error) {
	err = withRetry(ctx, func(ctx context.Context) error {
		var epoch int64
		err := l.transaction(ctx, backend.Normal, func(b *pgx.Batch) {
			b.Queue(lockSQL, l.store).QueryRow(func(row pgx.Row) error { return row.Scan(&epoch) })
		})
		if err == nil {
			err = l.flush(ctx, h)
		}
		if errors.Is(err, errDiverged) { // what the server has after a restart is durable
			err = nil
		}
		current = uint64(epoch)
		return err
	})
	return current, err
}
