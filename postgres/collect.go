package postgres

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/scratch"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/sqladapter"
)

// A collection finds what is in use in a copy of the log that it makes for itself, and makes the entries of the next epoch
// from what is left. That needs no lock on the store. It is decided by one transaction that holds the store: it stores the
// list of what is in use, and gives the store its new epoch. From then on what reads the log filters it by the list.
// Afterwards the collector rewrites the rows, which may be interrupted anywhere, and ends with the deletion of the list and
// of the entries of earlier epochs.

var _ backend.Collector = (*Engine)(nil)

// elsewhere lists places from which a collection deletes nothing.
var elsewhere = []string{
	"dead rows of lineage_log, lineage_entry, lineage_former and the tables of the search index, until VACUUM FULL, or until their space is used again after VACUUM",
	"the write-ahead log, standbys and backups of the server",
	"the memory of other processes, until they next use the store",
	"bundles, exports and other copies of the store",
	"projections in databases, until they are brought up to date, and what the databases keep of deleted rows",
}

// Collect implements backend.Collector. Snapshots expire; those of other processes when they next
// look at the log.
func (e *Engine) Collect(ctx context.Context, o backend.CollectOptions) (backend.CollectReport, error) {
	if err := e.begin(); err != nil { // Close waits for the cancelled collection
		return backend.CollectReport{}, err
	}
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
		err = fmt.Errorf("collect: %w", explain(err))
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
	c.report.Before = c.storedBytes(ctx)
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
		if !errors.Is(err, errBehind) && !errors.Is(err, errDiverged) && !errors.Is(err, backend.ErrExpired) {
			break
		}
	}
	if err != nil || c.o.DryRun {
		return err
	}
	if err := c.finish(ctx); err != nil {
		return err
	}
	if c.report.After = c.storedBytes(ctx); c.report.Before == 0 || c.report.After == 0 {
		c.report.Before, c.report.After = 0, 0
	}
	return nil
}

// decide finds what is in use, and publishes that if anything is not. It is errBehind if it has to be
// repeated.
func (c *collection) decide(ctx context.Context) error {
	copied, err := c.copyLog(ctx)
	if err != nil {
		return err
	}
	defer copied.close()
	o := c.o
	if o.Progress != nil {
		o.Progress = func(done, total int64) {
			c.total = total
			c.o.Progress(done, total)
		}
	}
	s, err := copied.engine.Survey(ctx, o)
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
	next := &filling{log: c.log, judging: newJudging(&c.log.clock), epoch: newID(), reads: copied.at.epoch, filter: s.LiveSet(), into: &served{log: c.log}}
	next.at = head{epoch: next.epoch}
	err = c.publish(ctx, s, copied, next)
	if err != nil && !errors.Is(err, backend.ErrUncertain) {
		err = errors.Join(err, c.log.dropEpoch(context.WithoutCancel(ctx), next.epoch, c.log.undecided(next.epoch)))
	}
	return err
}

var errNoRights = fmt.Errorf("a collection changes the log, which this role may not; docs/postgres.md lists the rights it needs: %w", sqladapter.ErrDenied)

// requireRights checks the rights of the role before a collection does anything.
func (e *Engine) requireRights(ctx context.Context) error {
	var may bool
	err := withRetry(ctx, func(ctx context.Context) error {
		return e.log.readOne(ctx, `SELECT has_column_privilege('lineage_store', 'epoch', 'UPDATE') AND has_column_privilege('lineage_log', 'data', 'UPDATE')
AND has_table_privilege('lineage_collection', 'INSERT') AND has_column_privilege('lineage_collection', 'epoch', 'UPDATE') AND has_table_privilege('lineage_collection', 'DELETE')
AND has_table_privilege('lineage_search', 'UPDATE') AND has_table_privilege('lineage_search_text', 'DELETE')`, nil, &may)
	})
	if err == nil && !may {
		err = errNoRights
	}
	return err
}

// logCopy is a copy of the log in a temporary directory, in which a collection finds what is in use.
type logCopy struct {
	engine *embedded.Engine
	at     head
	dir    *scratch.Dir
}

func (c *logCopy) close() {
	_ = c.engine.Close() // it is removed
	_ = c.dir.Remove()   // another process will
}

// copyLog copies the log.
func (c *collection) copyLog(ctx context.Context) (*logCopy, error) {
	pending, err := c.log.collected(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := scratch.New()
	if err != nil {
		return nil, err
	}
	engine, err := embedded.Open(ctx, filepath.Join(dir.Path, "log"), embedded.Options{Durability: backend.Normal, NoPacking: true})
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	to := &logCopy{engine, head{epoch: pending.epoch}, dir}
	if err := c.follow(ctx, to, pending.live); err != nil {
		to.close()
		return nil, err
	}
	return to, nil
}

// follow adds the new rows of the log to a copy.
func (c *collection) follow(ctx context.Context, to *logCopy, filter *live.Set) error {
	for more := true; more; {
		var rows []row
		err := withLongRetry(ctx, readTime, func(ctx context.Context) (err error) {
			rows, more, err = c.log.tail(ctx, to.at, mostCommits)
			return err
		})
		if err != nil {
			return err
		}
		for i := range rows {
			commits, _, err := rows[i].remaining(filter, new(backend.CollectReport))
			if err != nil {
				return err
			}
			for _, s := range commits {
				if err := to.engine.Follow(ctx, s); err != nil {
					return err
				}
			}
			to.at = to.at.after(&rows[i])
		}
	}
	return nil
}

// publish makes the entries of the next epoch, and decides the collection. It is errBehind if it has to be repeated: what
// was found dead is in use again, or the epoch is another one.
func (c *collection) publish(ctx context.Context, s *embedded.Survey, copied *logCopy, next *filling) error {
	if err := next.fillTo(ctx, copied.at.Number, nil); err != nil {
		return err
	}
	catchUp := func() error { // the copy, what is in use, and the entries
		err := c.follow(ctx, copied, nil)
		if err == nil {
			err = s.Follow()
		}
		if err == nil && s.Revived() {
			err = fmt.Errorf("what was found unused is in use again: %w", errBehind)
		}
		if err == nil {
			err = next.fillTo(ctx, copied.at.Number, nil)
		}
		return err
	}
	for range mostRetries { // to have little to do while the store is held
		from := copied.at.Number
		if err := catchUp(); err != nil {
			return err
		}
		if copied.at.Number <= from+fewCommits {
			break
		}
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	table, t, err := c.lock(ctx, nil)
	if err != nil {
		return err
	}
	defer t.rollback()
	st := table.state
	if st.epoch != copied.at.epoch {
		return errBehind
	}
	if err := catchUp(); err != nil {
		return err
	}
	if copied.at.Cursor != st.Cursor || next.at.Cursor != st.Cursor {
		return errBehind
	}
	c.report.Commit = s.LiveSet().Until
	live, err := s.LiveSet().Encode(c.log.identity)
	if err == nil && len(live) > maxLive {
		err = fmt.Errorf("the list of what is in use takes %d bytes, at most %d: %w", len(live), maxLive, backend.ErrTooLarge)
	}
	if err != nil {
		return err
	}
	c.warm = nil
	limited, cancel := context.WithTimeout(ctx, writeTime)
	err = t.publish(limited, next.epoch, st.epoch, live)
	cancel()
	if !errors.Is(err, errBehind) && (mayHaveWritten(err) || isTransient(err)) {
		switch epoch, unknown := c.log.settledEpoch(context.WithoutCancel(ctx), st.head); {
		case unknown != nil:
			return fmt.Errorf("%w: %w", backend.ErrUncertain, errors.Join(err, unknown))
		case epoch != st.epoch: // perhaps of a later collection
			err = nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			return errBehind
		}
	}
	return err
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

// maxLive is the largest size of the list of what a collection leaves, in bytes. Tests make it smaller.
var maxLive = maxRow

// mostRewritten limits the data of rows that are rewritten at once. Tests make it smaller.
var mostRewritten = 4 << 20

// finish rewrites the rows of a published collection, if there is one, and ends it.
func (c *collection) finish(ctx context.Context) error {
	for range mostRetries {
		pending, err := c.log.collected(ctx)
		if err != nil || pending.live == nil {
			return err
		}
		if err = c.sweep(ctx, pending); !errors.Is(err, errDiverged) {
			return err
		}
	}
	return errDiverged
}

// sweep rewrites the rows with something that is not in use, and ends the collection. It is
// errDiverged if another process did so, or the history is different.
func (c *collection) sweep(ctx context.Context, pending collected) (err error) {
	at := head{epoch: pending.epoch}
	var rows []row // to rewrite
	var size int
	done := c.report
	defer func() {
		if err != nil {
			c.report = done // it counts what was rewritten
		}
	}()
	rewrite := func() error {
		err := withLongRetry(ctx, writeTime, func(ctx context.Context) error { return c.log.rewrite(ctx, pending.epoch, rows) })
		if rows, size = nil, 0; err == nil {
			done = c.report
		}
		return err
	}
	for more := true; more && at.Number < pending.live.Until; {
		var found []row
		err := withLongRetry(ctx, readTime, func(ctx context.Context) (err error) {
			found, more, err = c.log.tail(ctx, at, mostCommits)
			return err
		})
		if err != nil {
			return err
		}
		for i := range found {
			r := &found[i]
			commits, changed, err := r.remaining(pending.live, &c.report)
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
			share := min(float64(at.Number)/float64(pending.live.Until), 1)
			c.o.Progress(int64((2+share)/3*float64(c.total)), c.total)
		}
	}
	if err := rewrite(); err != nil {
		return err
	}
	if err := c.log.dropEpochs(ctx, pending.epoch); err != nil {
		return err
	}
	if err := c.search.Collected(ctx); err != nil {
		return err
	}
	return withLongRetry(ctx, writeTime, func(ctx context.Context) error { return c.log.endCollection(ctx, pending.epoch) })
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
		l.pending(epoch)(b)
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
