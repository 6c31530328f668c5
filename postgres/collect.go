package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/sqladapter"
)

// A collection is decided by one transaction that holds the store: it stores the list of what is in
// use, and gives the store a new epoch. From then on readers filter the log by the list. Afterwards
// the collector rewrites the rows. That needs no lock on the store, may be interrupted anywhere, and
// ends with the deletion of the list.

var _ backend.Collector = (*Engine)(nil)

// collected describes the last collection of a store.
type collected struct {
	epoch uint64    // random; 0 before the first
	made  int64     // when the store was created, in microseconds
	live  *live.Set // what is in use; nil when every row has been rewritten
}

// replica returns the id of the replicas of the epoch. The time of creation is part of it, because a
// store that was created again as a copy has the id of the former one, and may have other commits.
func (c collected) replica(store [16]byte) [16]byte {
	b := binary.LittleEndian.AppendUint64(append([]byte("lineage replica"), store[:]...), c.epoch)
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(b, uint64(c.made)))
	return [16]byte(sum[:16])
}

// collected returns the last collection.
func (l *log) collected(ctx context.Context) (c collected, err error) {
	var epoch int64
	var encoded []byte
	err = again(ctx, func(ctx context.Context) error {
		return l.pool.QueryRow(ctx, `SELECT s.epoch, (extract(epoch FROM s.created_at) * 1000000)::bigint, c.live FROM lineage_store s LEFT JOIN lineage_collection c ON c.store = s.store AND c.epoch = s.epoch WHERE s.store = $1`, l.store).Scan(&epoch, &c.made, &encoded)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = errRemoved
	}
	if c.epoch = uint64(epoch); err == nil && encoded != nil {
		c.live, err = live.Decode(encoded, l.identity, "lineage_collection")
	}
	return c, err
}

// left returns the commits of a row without what is not in use, which is added to a report, and
// whether there was any. A nil set keeps everything.
func (r *row) left(set *live.Set, gone *backend.CollectReport) (commits []embedded.Sequenced, changed bool, err error) {
	commits, err = r.commits()
	for i := 0; err == nil && set != nil && i < len(commits); i++ {
		var less bool
		if less, err = embedded.FilterDead(&commits[i], set, gone); less {
			changed = true
		}
	}
	return commits, changed, err
}

// Epoch returns a number that changes with each collection of the store.
func (e *Engine) Epoch(ctx context.Context) (epoch uint64, err error) {
	if known := e.known.Load(); known != nil {
		return known.epoch, nil
	}
	err = again(ctx, func(ctx context.Context) error {
		h, err := e.log.newest(ctx, 0)
		epoch = h.epoch
		return err
	})
	return epoch, err
}

// elsewhere lists places from which a collection deletes nothing.
var elsewhere = []string{
	"dead rows of lineage_log, until VACUUM FULL, or until their space is used again after VACUUM",
	"the write-ahead log, standbys and backups of the server",
	"replicas of other processes, until they next use the store",
	"bundles, exports and other copies of the store",
	"projections in databases, until they are brought up to date, and what the databases keep of deleted rows",
}

// Collect implements backend.Collector. Snapshots expire; those of other processes when they next
// look at the log.
func (e *Engine) Collect(ctx context.Context, o backend.CollectOptions) (backend.CollectReport, error) {
	e.looks.mu.Lock()
	if e.closed.Load() {
		e.looks.mu.Unlock()
		return backend.CollectReport{}, errClosed
	}
	e.going.Add(1) // Close waits for the cancelled collection
	e.looks.mu.Unlock()
	defer e.going.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.ctx, func() { cancel(errClosed) })()
	e.collecting.Lock()
	defer e.collecting.Unlock()
	c := collection{Engine: e, o: o}
	err := c.run(ctx)
	if r := &c.report; err == nil && r.Records+r.Erased > 0 {
		r.Elsewhere = elsewhere
	}
	if err != nil {
		err = fmt.Errorf("collect: %w", e.expired(explain(err)))
	}
	return c.report, err
}

// collection is a running collection.
type collection struct {
	*Engine
	o      backend.CollectOptions
	report backend.CollectReport
	total  int64 // bytes of work as the survey counts them
}

func (c *collection) run(ctx context.Context) (err error) {
	if c.report.Before, err = c.storedBytes(ctx); err != nil {
		return err
	}
	if !c.o.DryRun {
		if err := c.requireRights(ctx); err != nil {
			return err
		}
	}
	for range mostRetries {
		err = nil
		if !c.o.DryRun { // one collection after another
			err = c.finish(ctx)
		}
		if err == nil {
			err = c.decide(ctx)
		}
		if !errors.Is(err, errBehind) && !errors.Is(err, errDiverged) && !errors.Is(c.expired(err), backend.ErrExpired) {
			break
		}
	}
	if err != nil || c.o.DryRun {
		return err
	}
	if err := c.finish(ctx); err != nil {
		return err
	}
	c.report.After, err = c.storedBytes(ctx)
	return err
}

// decide finds what is in use, and publishes that if anything is not. It is errBehind if it has to be
// repeated.
func (c *collection) decide(ctx context.Context) error {
	s, of, err := c.survey(ctx)
	if err != nil {
		return err
	}
	would := s.Report()
	if c.report.Commit = would.Commit; c.o.DryRun {
		would.Before, would.Files = c.report.Before, 0
		c.report = would
		return nil
	}
	if would.Records+would.Erased == 0 {
		return nil
	}
	return c.publish(ctx, s, of)
}

var errNoRights = fmt.Errorf("a collection changes the log, which this role may not; docs/postgres.md lists the rights it needs: %w", sqladapter.ErrDenied)

// requireRights checks the rights of the role before a collection does anything.
func (e *Engine) requireRights(ctx context.Context) error {
	var may bool
	err := again(ctx, func(ctx context.Context) error {
		return e.log.pool.QueryRow(ctx, `SELECT has_column_privilege('lineage_store', 'epoch', 'UPDATE') AND has_column_privilege('lineage_log', 'data', 'UPDATE')
AND has_table_privilege('lineage_collection', 'INSERT') AND has_column_privilege('lineage_collection', 'epoch', 'UPDATE') AND has_table_privilege('lineage_collection', 'DELETE')`).Scan(&may)
	})
	if err == nil && !may {
		err = errNoRights
	}
	return err
}

// survey finds what is in use in a replica, and returns that too. Others read and write meanwhile.
func (c *collection) survey(ctx context.Context) (*embedded.Survey, *embedded.Engine, error) {
	if err := c.fresh(ctx); err != nil {
		return nil, nil, err
	}
	c.reads.RLock()
	replica := c.replica
	c.reads.RUnlock()
	if replica == nil {
		return nil, nil, errNoReplica
	}
	o := c.o
	if o.Progress != nil {
		o.Progress = func(done, total int64) {
			c.total = total
			c.o.Progress(done, total)
		}
	}
	s, err := replica.Survey(ctx, o)
	if err == nil { // to have little to follow while the store is held
		if err = c.fresh(ctx); err == nil {
			err = s.Follow()
		}
	}
	return s, replica, err
}

// publish decides a collection. It is errBehind if the survey is not of the current replica. Then it
// drops the replica, which has what was removed.
func (c *collection) publish(ctx context.Context, s *embedded.Survey, of *embedded.Engine) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	if c.replica != of {
		return errBehind
	}
	t, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer t.rollback()
	if c.replica != of {
		return errBehind
	}
	if err := s.Follow(); err != nil {
		return err
	}
	c.report.Commit = s.LiveSet().Until
	live, err := s.LiveSet().Encode(c.log.identity)
	if err == nil && len(live) > maxLive {
		err = fmt.Errorf("the list of what is in use takes %d bytes, at most %d: %w", len(live), maxLive, backend.ErrTooLarge)
	}
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, turnTime)
	err = t.publish(limited, newID(), c.head.epoch, live)
	cancel()
	if !errors.Is(err, errBehind) && (uncertain(err) || lost(err)) {
		switch epoch, unknown := c.log.settledEpoch(context.WithoutCancel(ctx), c.head); {
		case unknown != nil:
			return fmt.Errorf("%w: %w", backend.ErrUncertain, errors.Join(err, unknown))
		case epoch != c.head.epoch: // perhaps of a later collection
			err = nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			return errBehind
		}
	}
	if err != nil {
		return err
	}
	if err := c.drop(true); err != nil {
		c.Engine.o.Logger.Warn("the replica was not removed", "store", c.Engine.o.Store, "err", err)
	}
	return nil
}

// publish stores the list of what is in use and ends the turn. After an error it may have been stored.
// It is errBehind while the collection of the epoch is pending.
func (t *turn) publish(ctx context.Context, epoch, former uint64, live []byte) error {
	var b pgx.Batch
	queueDurability(&b, backend.Full)
	b.Queue(`SELECT 1 / (1 - count(*)) FROM lineage_collection WHERE store = $1 AND epoch = $2`, t.log.store, int64(former))
	b.Queue(`INSERT INTO lineage_collection AS c (store, epoch, live) VALUES ($1, $2, $3) ON CONFLICT (store) DO UPDATE SET epoch = excluded.epoch, live = excluded.live`,
		t.log.store, int64(epoch), live)
	b.Queue(`UPDATE lineage_store SET epoch = $2 WHERE store = $1`, t.log.store, int64(epoch))
	return t.commit(ctx, &b)
}

// settledEpoch waits until nobody is changing the epoch, makes it durable and returns it.
func (l *log) settledEpoch(ctx context.Context, h head) (is uint64, err error) {
	err = again(ctx, func(ctx context.Context) error {
		var epoch int64
		err := l.pool.QueryRow(ctx, `SELECT epoch FROM lineage_store WHERE store = $1 FOR UPDATE`, l.store).Scan(&epoch)
		if err == nil {
			err = l.flush(ctx, h)
		}
		if errors.Is(err, errDiverged) { // what the server has after a restart is durable
			err = nil
		}
		is = uint64(epoch)
		return err
	})
	return is, err
}

// maxLive is the largest size of the list of what a collection leaves, in bytes. Tests make it smaller.
var maxLive = maxRow

// mostRewritten limits the data of rows that are rewritten at once. Tests make it smaller.
var mostRewritten = 4 << 20

// finish rewrites the rows of a published collection, if there is one, and ends it.
func (c *collection) finish(ctx context.Context) error {
	for range mostRetries {
		is, err := c.log.collected(ctx)
		if err != nil || is.live == nil {
			return err
		}
		if err = c.sweep(ctx, is); !errors.Is(err, errDiverged) {
			return err
		}
	}
	return errDiverged
}

// sweep rewrites the rows with something that is not in use, and ends the collection. It is
// errDiverged if another process did so, or the history is different.
func (c *collection) sweep(ctx context.Context, is collected) (err error) {
	at := head{epoch: is.epoch}
	var rows []row // to rewrite
	var size int
	done := c.report
	defer func() {
		if err != nil {
			c.report = done // it counts what was rewritten
		}
	}()
	rewrite := func() error {
		err := again(ctx, func(ctx context.Context) error { return c.log.rewrite(ctx, is.epoch, rows) })
		if rows, size = nil, 0; err == nil {
			done = c.report
		}
		return err
	}
	for more := true; more && at.Number < is.live.Until; {
		var found []row
		err := again(ctx, func(ctx context.Context) (err error) {
			found, more, err = c.log.tail(ctx, c.log.pool, at, mostCommits)
			return err
		})
		if err != nil {
			return err
		}
		for i := range found {
			r := &found[i]
			commits, changed, err := r.left(is.live, &c.report)
			if err != nil {
				return err
			}
			at = at.after(r)
			if !changed {
				continue
			}
			size += len(r.data)
			r.data = nil
			for _, commit := range commits {
				r.data = appendCommit(r.data, commit)
			}
			if err := r.seal(); err != nil {
				return err
			}
			if rows = append(rows, *r); size >= mostRewritten {
				if err := rewrite(); err != nil {
					return err
				}
			}
		}
		if c.o.Progress != nil && c.total > 0 { // the survey is two thirds of the work
			share := min(float64(at.Number)/float64(is.live.Until), 1)
			c.o.Progress(int64((2+share)/3*float64(c.total)), c.total)
		}
	}
	if err := rewrite(); err != nil {
		return err
	}
	return again(ctx, func(ctx context.Context) error { return c.log.endCollection(ctx, is.epoch) })
}

// rewrite replaces the data of rows. It is errCollected if the collection is no longer pending. Its
// lock on the collection keeps the next one from being decided.
func (l *log) rewrite(ctx context.Context, epoch uint64, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	n, id, data := make([]int64, len(rows)), make([]int64, len(rows)), make([][]byte, len(rows))
	for i := range rows {
		n[i], id[i], data[i] = int64(rows[i].first), int64(rows[i].id), rows[i].data
	}
	rewritten := 0
	err := l.transaction(ctx, backend.Normal, func(b *pgx.Batch) {
		b.Queue(`SELECT epoch FROM lineage_collection WHERE store = $1 AND epoch = $2 FOR UPDATE`, l.store, int64(epoch))
		b.Queue(`SELECT 1 / count(*) FROM lineage_collection WHERE store = $1 AND epoch = $2`, l.store, int64(epoch))
		b.Queue(`UPDATE lineage_log l SET data = r.data FROM unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS r (n, id, data)
WHERE l.store = $1 AND l.n = r.n AND l.id = r.id RETURNING l.n`, l.store, n, id, data).Query(func(found pgx.Rows) error {
			for found.Next() {
				rewritten++
			}
			return found.Err()
		})
	})
	if errors.Is(err, errBehind) || err == nil && rewritten != len(rows) {
		return errCollected
	}
	return err
}

// endCollection deletes the list of a collection. This write is synced, and with it the rewritten
// rows.
func (l *log) endCollection(ctx context.Context, epoch uint64) error {
	return l.transaction(ctx, backend.Full, func(b *pgx.Batch) {
		b.Queue(`DELETE FROM lineage_collection WHERE store = $1 AND epoch = $2`, l.store, int64(epoch))
	})
}
