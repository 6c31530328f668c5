package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Filling makes the entries of an epoch from the log, many rows at once: for a store that an earlier version wrote, for the
// next epoch of a collection, and for a check.

// filling replays the log into entries. It starts after the row up to which there are entries.
type filling struct {
	log     *log
	judging *judging
	epoch   uint64 // of the entries
	reads   uint64
	filter  *live.Set
	into    sink
	at      head // the row up to which there are entries
}

// newFilling returns a filling of an epoch. reads is the epoch in which the log is read, and filter what is kept of it; nil keeps
// everything.
func newFilling(l *log, epoch, reads uint64, filter *live.Set, into sink) *filling {
	return &filling{log: l, judging: newJudging(&l.clock), epoch: epoch, reads: reads, filter: filter, into: into, at: head{epoch: epoch}}
}

// sink stores the entries that are made.
type sink interface {
	// begin returns the state of the entries that are stored, and a function that reads them.
	begin(ctx context.Context, epoch uint64) (state, func(context.Context, need) (fetchResult, error), error)
	// end stores entries, and the state after them. It follows a begin.
	end(ctx context.Context, st state, entries []entryVersion) error
	// abandon ends what begin began without storing anything.
	abandon()
}

// fillTo replays rows until the entries account for a commit, and reports how far it is.
func (f *filling) fillTo(ctx context.Context, number uint64, progress func(done uint64) error) error {
	since := time.Now() // the start, or the last progress
	for pause := shortPause; ; {
		more, err := f.fillNext(ctx, number)
		if (isTransient(err) || mayHaveWritten(err)) && ctx.Err() == nil && time.Since(since) < patience { // it begins where the entries are
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, longPause)
			continue
		}
		pause, since = shortPause, time.Now()
		if err == nil && progress != nil {
			err = progress(f.at.Number)
		}
		if err != nil || !more {
			return explain(err)
		}
	}
}

// fillNext replays the next rows up to a number, and reports whether there may be more. It reads the log before it begins to
// write entries, so that it needs one connection at a time.
func (f *filling) fillNext(ctx context.Context, number uint64) (more bool, err error) {
	rows, err := f.nextRows(ctx, number)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	st, fetch, err := f.into.begin(ctx, f.epoch)
	defer func() {
		if err != nil {
			f.judging.state.Cache.Forget()
			f.into.abandon()
		}
	}()
	if err != nil {
		return false, err
	}
	if st.head != f.at { // there were entries before, or another process makes them as well
		f.judging.state.Cache.Forget()
		f.at = st.head
		f.into.abandon()
		return true, nil
	}
	f.judging.begin(newStateReader(ctx, newCache(st, DefaultCache), f.log.identity, st, fetch))
	commits, last, err := f.decode(rows, number)
	if err != nil {
		return false, err
	}
	if err := f.judging.replayAll(ctx, commits); err != nil {
		return false, err
	}
	st.head = st.head.after(last)
	st.counts = f.judging.counts.Values()
	out, err := newOutput(f.judging.reader, st.Number, true)
	if err != nil {
		return false, err
	}
	st.folded = out.folded
	if err := f.into.end(ctx, st, out.entries); err != nil {
		return false, err
	}
	f.at = st.head
	return st.Number < number, nil
}

// nextRows reads rows of the log after those for which there are entries. It returns none if these reach a number.
func (f *filling) nextRows(ctx context.Context, number uint64) (rows []logRow, err error) {
	if f.at.Number >= number {
		return nil, nil
	}
	at := f.at
	at.epoch = f.reads
	err = withRetry(ctx, func(ctx context.Context) (err error) {
		rows, _, err = f.log.tail(ctx, at, fewCommits)
		return err
	})
	if errors.Is(err, errDiverged) && !errors.Is(err, errCollected) {
		err = &backend.CorruptError{File: "the log", What: fmt.Sprintf("it does not have row %d, for which there are entries", at.first)}
	}
	return rows, err
}

// decode returns the commits of the first rows, up to a number and a limit of bytes, without what the filter removes, and
// the last row that it decoded.
func (f *filling) decode(rows []logRow, number uint64) (all []replayed, last *logRow, err error) {
	size := 0
	for i := range rows {
		r := &rows[i]
		if size > mostFilled || r.first > number {
			break
		}
		commits, _, err := r.remaining(f.filter, nil)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range commits {
			c, err := newReplayed(r, s)
			if err != nil {
				return nil, nil, fmt.Errorf("commit %d: %w", s.Number, &backend.CorruptError{File: fmt.Sprintf("row %d of the log", r.first), What: err.Error()})
			}
			size += len(s.Payload)
			all = append(all, c)
		}
		last = r
	}
	return all, last, nil
}

// mostFilled limits the commits whose entries are made at once, in bytes. Their entries take several times as much memory.
const mostFilled = 8 << 20

// fill makes the entries that a store of an earlier version does not have. One process does it at a time. Another one waits,
// and continues where the first one ended.
func (e *Engine) fill(ctx context.Context) error {
	var r stateRead
	var last uint64
	for range mostRetries {
		err := e.log.readRetried(ctx, func(b *pgx.Batch) {
			r, last = stateRead{}, 0
			e.log.queueState(b, known{}, &r)
			b.Queue(`SELECT coalesce((SELECT n + count - 1 FROM lineage_log WHERE store = $1 ORDER BY n DESC LIMIT 1), 0)`, e.log.store).QueryRow(func(row pgx.Row) error {
				return row.Scan(&last)
			})
		})
		if err != nil {
			return err
		}
		if r.state.Number >= last {
			e.cache.Store(newCache(r.state, e.o.CacheBytes))
			return nil
		}
		pending, err := e.log.collected(ctx)
		if err != nil {
			return err
		}
		e.o.Logger.Info("the store of an earlier version is prepared", "store", e.o.Store, "commits", last-r.state.Number)
		f := newFilling(e.log, pending.epoch, pending.epoch, pending.live, &served{log: e.log})
		err = f.fillTo(ctx, last, func(done uint64) error {
			if e.o.Progress != nil {
				e.o.Progress(int64(done), int64(max(last, done)))
			}
			return nil
		})
		if err != nil && !errors.Is(err, errCollected) && !isTransient(err) {
			return err
		}
	}
	return fmt.Errorf("prepare the store: it changed %d times: %w", mostRetries, backend.ErrConflict)
}
