package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/lineage/backend"
)

// Pruning removes versions that were replaced, after a time in which snapshots read them.

// formerTime is how long replaced versions stay. Tests make it shorter.
var formerTime = 5 * time.Minute

const (
	// pruneEvery is the number of commits after which a process prunes.
	pruneEvery = 256
	// mostPruned limits the keys whose replaced versions are removed at once, and mostFormer the rows that name them. Closing
	// waits for that.
	mostPruned = 4096
	mostFormer = 1024
)

// pruneLater prunes if it is time to. writing is held.
func (e *Engine) pruneLater(r *logRow) {
	if r.last().Number/pruneEvery == (r.first-1)/pruneEvery || e.pruning.forbidden {
		return
	}
	select {
	case e.pruning.busy <- struct{}{}:
	default:
		return
	}
	if e.begin() != nil {
		return
	}
	epoch := e.head.epoch
	go func() {
		defer e.going.Done()
		err := e.log.prune(e.ctx, epoch)
		<-e.pruning.busy
		if sqlState(err) == insufficient {
			e.writing.Lock()
			e.pruning.forbidden = true
			e.writing.Unlock()
		}
		if err != nil && e.ctx.Err() == nil {
			e.o.Logger.Warn("replaced versions of entries were not removed", "store", e.o.Store, "err", err)
		}
	}()
}

// prune removes replaced versions that are old enough, unless another process does. When the context ends, it finishes
// what it has begun: otherwise programs that end soon would never remove anything.
func (l *log) prune(ctx context.Context, epoch uint64) error {
	for ctx.Err() == nil {
		more, err := l.pruneSome(context.WithoutCancel(ctx), epoch)
		if sqlState(err) == lockTimeout {
			return nil
		}
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// pruneSome is one step of prune. more is false if there was less to remove than a step may: what has become old enough
// since is left to the next one who prunes.
func (l *log) pruneSome(ctx context.Context, epoch uint64) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := l.acquire(ctx)
	if err != nil {
		return false, err
	}
	t := &writeTx{l, conn, epoch}
	defer t.rollback()
	var b pgx.Batch
	var old formerVersions
	begin(&b)
	t.queueOldest(&b, &old)
	if err := send(ctx, conn, &b); err != nil || len(old.numbers) == 0 {
		return false, err
	}
	more = len(old.numbers) == mostFormer || len(old.keys) >= mostPruned
	var d pgx.Batch
	queueDurability(&d, backend.Normal)
	t.queuePrune(&d, &old)
	return more, t.commit(ctx, &d)
}

// formerVersions are rows of lineage_former, and the keys in them.
type formerVersions struct {
	numbers []int64
	parts   []int32
	keys    [][]byte
}

// queueOldest adds the statements that read the oldest rows, and keep others from pruning.
func (t *writeTx) queueOldest(b *pgx.Batch, old *formerVersions) {
	store, epoch := t.log.store, int64(t.epoch)
	// Whoever has the oldest row prunes.
	b.Queue(`SELECT FROM lineage_former WHERE store = $1 AND epoch = $2 AND n > 0 ORDER BY n, part LIMIT 1 FOR UPDATE NOWAIT`, store, epoch)
	b.Queue(`SELECT n, part, keys FROM (
  SELECT n, part, keys, sum(cardinality(keys)) OVER (ORDER BY n, part) - cardinality(keys) AS before FROM (
    SELECT n, part, keys FROM lineage_former WHERE store = $1 AND epoch = $2 AND n > 0 AND made_at < now() - $3::bigint * interval '1 millisecond'
      AND n <= (SELECT folded FROM lineage_head WHERE store = $1 AND epoch = $2) ORDER BY n, part LIMIT $5) oldest) f
WHERE before < $4 ORDER BY n, part`,
		store, epoch, formerTime.Milliseconds(), mostPruned, mostFormer).Query(func(rows pgx.Rows) error {
		var number int64
		var part int32
		var ks [][]byte
		_, err := pgx.ForEachRow(rows, []any{&number, &part, &ks}, func() error {
			old.numbers, old.parts, old.keys = append(old.numbers, number), append(old.parts, part), append(old.keys, ks...)
			ks = nil
			return nil
		})
		return err
	})
}

// queuePrune adds the statements that remove replaced versions, and the rows that name them.
func (t *writeTx) queuePrune(b *pgx.Batch, old *formerVersions) {
	store, epoch := t.log.store, int64(t.epoch)
	horizon := old.numbers[len(old.numbers)-1]
	slices.SortFunc(old.keys, bytes.Compare) // all lock rows in this order
	ks := slices.CompactFunc(old.keys, bytes.Equal)
	b.Queue(`SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`) // without statistics
	// The newest version that is as old as the horizon stays, unless it is a deletion.
	b.Queue(`DELETE FROM lineage_entry e USING (
  SELECT k.key, v.age, v.gone FROM unnest($4::bytea[]) AS k (key), LATERAL (
    SELECT age, value IS NULL AS gone FROM lineage_entry WHERE store = $1 AND epoch = $2 AND key = k.key AND age >= $3 ORDER BY age LIMIT 1) v) newest
WHERE e.store = $1 AND e.epoch = $2 AND e.key = newest.key AND (e.age > newest.age OR newest.gone AND e.age = newest.age)`, store, epoch, -horizon, ks)
	b.Queue(`DELETE FROM lineage_former f USING unnest($3::bigint[], $4::integer[]) AS p (n, part) WHERE f.store = $1 AND f.epoch = $2 AND f.n = p.n AND f.part = p.part`,
		store, epoch, old.numbers, old.parts)
	b.Queue(`UPDATE lineage_head SET horizon = greatest(horizon, $3) WHERE store = $1 AND epoch = $2`, store, epoch, horizon)
}

// fence adds statements to a transaction, at its start. One of them is an error if the transaction may not happen.
type fence func(*pgx.Batch)

// pending is a fence that keeps a collection pending, so that the next one cannot be decided.
func (l *log) pending(epoch uint64) fence {
	return func(b *pgx.Batch) {
		b.Queue(`SELECT FROM lineage_collection WHERE store = $1 AND epoch = $2 FOR UPDATE`, l.store, int64(epoch))
		b.Queue(`SELECT 1 / count(*) FROM lineage_collection WHERE store = $1 AND epoch = $2`, l.store, int64(epoch))
	}
}

// undecided is a fence that keeps an epoch from becoming the current one.
func (l *log) undecided(epoch uint64) fence {
	return func(b *pgx.Batch) {
		b.Queue(lockSQL, l.store)
		b.Queue(`SELECT 1 / count(*) FROM lineage_store WHERE store = $1 AND epoch <> $2`, l.store, int64(epoch))
	}
}

// dropEpochs removes what is left of epochs other than that of a collection. It is errCollected if the collection is no
// longer pending.
func (l *log) dropEpochs(ctx context.Context, current uint64) error {
	var others []int64
	err := withRetry(ctx, func(ctx context.Context) error {
		return l.read(ctx, func(b *pgx.Batch) {
			b.Queue(`SELECT epoch FROM lineage_head WHERE store = $1 AND epoch <> $2`, l.store, int64(current)).Query(func(rows pgx.Rows) (err error) {
				others, err = pgx.CollectRows(rows, pgx.RowTo[int64])
				return err
			})
		})
	})
	for _, epoch := range others {
		if err == nil {
			err = l.dropEpoch(ctx, uint64(epoch), l.pending(current))
		}
	}
	if errors.Is(err, errBehind) {
		err = errCollected
	}
	return err
}

// mostDropped is the number of entries that are removed at once. Tests make it smaller.
var mostDropped = 20_000

// dropEpoch removes the entries of an epoch. It is errBehind if the fence says so.
func (l *log) dropEpoch(ctx context.Context, epoch uint64, check fence) error {
	for after, more := []byte{}, true; more; {
		last, err := l.lastDropped(ctx, epoch, after)
		if err != nil {
			return err
		}
		more = last[0] != afterAllKeys
		err = withLongRetry(ctx, writeTime, func(ctx context.Context) error {
			return l.transaction(ctx, backend.Normal, func(b *pgx.Batch) {
				check(b)
				b.Queue(`DELETE FROM lineage_entry WHERE store = $1 AND epoch = $2 AND key > $3 AND key <= $4`, l.store, int64(epoch), after, last)
				if !more {
					b.Queue(`DELETE FROM lineage_former WHERE store = $1 AND epoch = $2`, l.store, int64(epoch))
					b.Queue(`DELETE FROM lineage_head WHERE store = $1 AND epoch = $2`, l.store, int64(epoch))
				}
			})
		})
		if err != nil {
			return err
		}
		after = last
	}
	return nil
}

// afterAllKeys is a byte with which no key of an entry begins.
const afterAllKeys = 0xff

// lastDropped returns the last key of the next mostDropped entries of an epoch. If there are fewer, it begins with afterAllKeys.
func (l *log) lastDropped(ctx context.Context, epoch uint64, after []byte) (last []byte, err error) {
	err = withLongRetry(ctx, readTime, func(ctx context.Context) error {
		err := l.readOne(ctx, `SELECT key FROM lineage_entry WHERE store = $1 AND epoch = $2 AND key > $3 ORDER BY key LIMIT 1 OFFSET $4`,
			[]any{l.store, int64(epoch), after, mostDropped - 1}, &last)
		if errors.Is(err, pgx.ErrNoRows) {
			last, err = []byte{afterAllKeys}, nil
		}
		return err
	})
	return last, err
}
