package postgres

import (
	"context"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/lineage/backend"
)

// flush makes the log durable up to a row, by a later synced write. It is errDiverged if the row is
// not there.
func (l *log) flush(ctx context.Context, h head) error {
	if h.first == 0 {
		return nil
	}
	there, err := l.flushAll(ctx, []head{h})
	if sqlState(err) == readOnlyTransaction {
		there, err = l.onStandby(ctx, h, err)
	}
	if err == nil && !there[0] {
		err = errDiverged
	}
	return err
}

// onStandby reports whether a standby has a row. What a standby has is durable: its server synced it before sending it.
// It is errLagging if the standby's log ends before the row. On another server, which refused to write, it returns refused.
func (l *log) onStandby(ctx context.Context, h head, refused error) (there []bool, err error) {
	r, err := l.reachOf(ctx, h.first, h.ID, h.count())
	switch {
	case err != nil:
	case !r.standby:
		err = refused
	case !r.reached:
		err = errLagging
	}
	return []bool{r.row}, err
}

// flushAll makes durable what the log has of some rows, which were written before it is called, and reports which it has.
func (l *log) flushAll(ctx context.Context, heads []head) (there []bool, err error) {
	if err := l.flushing.Acquire(ctx); err != nil {
		return nil, unsent(err)
	}
	defer l.flushing.Release()
	there = make([]bool, len(heads))
	return there, l.transaction(ctx, backend.Full, func(b *pgx.Batch) {
		for i, h := range heads {
			if there[i] = h.first == 0; there[i] {
				continue
			}
			b.Queue(`SELECT count(*) > 0 FROM lineage_log WHERE store = $1 AND n = $2 AND id = $3 AND count = $4`, l.store, int64(h.first), int64(h.ID), h.count()).QueryRow(func(row pgx.Row) error {
				return row.Scan(&there[i])
			})
		}
		b.Queue(`INSERT INTO lineage_durable (store, slot, n) VALUES ($1, $2, $3) ON CONFLICT (store, slot) DO UPDATE SET n = excluded.n`,
			l.store, rand.IntN(durableSlots), int64(heads[len(heads)-1].first))
	})
}

// durableSlots is the number of rows of a store that synced writes change. Two that change the same row are synced one after
// the other.
const durableSlots = 64
