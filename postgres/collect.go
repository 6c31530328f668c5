package postgres

import (
	"context"
	"errors"
	"fmt"

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
	copied, err := copyLog(ctx, c.log)
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
	survey, err := copied.engine.Survey(ctx, o)
	if err != nil {
		return err
	}
	would := survey.Report()
	if c.report.Commit = would.Commit; c.o.DryRun {
		would.Before, would.Files = c.report.Before, 0
		c.report = would
		return nil
	}
	if would.Records+would.Erased == 0 {
		return nil
	}
	p := &publication{Engine: c.Engine, survey: survey, copied: copied, next: newFilling(c.log, newID(), copied.at.epoch, survey.LiveSet(), &served{log: c.log}), report: &c.report}
	err = p.publish(ctx)
	if err != nil && !errors.Is(err, backend.ErrUncertain) {
		err = errors.Join(err, c.log.dropEpoch(context.WithoutCancel(ctx), p.next.epoch, c.log.undecided(p.next.epoch)))
	}
	return err
}

// finish rewrites the rows of a published collection, if there is one, and ends it.
func (c *collection) finish(ctx context.Context) error {
	for range mostRetries {
		pending, err := c.log.collected(ctx)
		if err != nil || pending.live == nil {
			return err
		}
		if err = c.end(ctx, pending); !errors.Is(err, errDiverged) {
			return err
		}
	}
	return errDiverged
}

// end rewrites the rows of a published collection, and ends it. It is errDiverged if another process did so, or the history is
// different.
func (c *collection) end(ctx context.Context, pending collected) error {
	// The first search after the collection would clear an index that is not pruned yet. Errors come again below.
	_ = c.search.Collected(ctx, c.searchable(pending))
	s := newSweep(c.log, pending, c.report)
	if c.o.Progress != nil && c.total > 0 {
		s.progress = func(share float64) { // the survey is two thirds of the work
			c.o.Progress(int64((2+share)/3*float64(c.total)), c.total)
		}
	}
	err := s.run(ctx)
	if c.report = s.report; err != nil {
		return err
	}
	if err := c.log.dropEpochs(ctx, pending.epoch); err != nil {
		return err
	}
	if err := c.search.Collected(ctx, c.searchable(pending)); err != nil {
		return err
	}
	return withLongRetry(ctx, writeTime, func(ctx context.Context) error { return c.log.endCollection(ctx, pending.epoch) })
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
