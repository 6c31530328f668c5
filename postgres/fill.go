package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
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
	begin(ctx context.Context, epoch uint64) (state, func(context.Context, need) (found, error), error)
	// end stores entries, and the state after them. It follows a begin.
	end(ctx context.Context, st state, entries []version) error
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
	f.judging.begin(newTable(ctx, newCache(st, DefaultCache), f.log.identity, st, fetch))
	commits, last, err := f.decode(rows, number)
	if err != nil {
		return false, err
	}
	if err := f.judging.replayAll(ctx, commits); err != nil {
		return false, err
	}
	st.head = st.head.after(last)
	st.counts = f.judging.counts.Values()
	out, err := newOutput(f.judging.table, st.Number, true)
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
func (f *filling) nextRows(ctx context.Context, number uint64) (rows []row, err error) {
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
func (f *filling) decode(rows []row, number uint64) (all []replayed, last *row, err error) {
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

// replayed is a commit of the log.
type replayed struct {
	row     *row
	s       embedded.Sequenced
	commit  *structure.Commit
	offsets []int
}

// newReplayed decodes a commit of a row.
func newReplayed(r *row, s embedded.Sequenced) (replayed, error) {
	c, offsets, err := embedded.DecodeOffsets(s.Payload)
	if err != nil {
		return replayed{}, err
	}
	c.Number = s.Number
	return replayed{r, s, c, offsets}, nil
}

// replayAll adds the entries of commits of the log.
func (j *judging) replayAll(ctx context.Context, all []replayed) error {
	var ks []judge.Key
	for _, r := range all {
		ks = append(ks, judge.Keys(judge.Case{Commit: r.commit, Replay: true}, backend.Options{})...)
	}
	if err := j.state.Prefetch(ctx, j.table, ks); err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(r replayed) bool { return r.s.Unknown }) { // each forgets all sessions
		if err := j.table.Prefetch(ctx, read.Need{Ranges: []read.Range{read.Under(keys.Of(keys.TableRequests))}}); err != nil {
			return err
		}
	}
	for _, r := range all {
		if j.row == nil || j.row.first != r.row.first || r.s.Number == r.row.first {
			j.row = &row{first: r.row.first, id: r.row.id}
		}
		if err := j.add(ctx, r.commit, r.s, r.offsets, true); err != nil {
			return fmt.Errorf("commit %d: %w", r.s.Number, err)
		}
		j.row.count++
	}
	return nil
}

// served is a sink in the tables of the server. From begin on, no other process can fill the epoch.
type served struct {
	log *log
	tx  *writeTx
}

func (s *served) begin(ctx context.Context, epoch uint64) (st state, fetch func(context.Context, need) (found, error), err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	conn, err := s.log.acquire(ctx)
	if err != nil {
		return st, nil, err
	}
	s.tx = &writeTx{s.log, conn, epoch}
	var b pgx.Batch
	begin(&b)
	b.Queue(`INSERT INTO lineage_head (store, epoch, first, n, id, numbers, folded, unfolded) VALUES ($1, $2, 0, 0, 0, $3, 0, 0) ON CONFLICT DO NOTHING`, s.log.store, int64(epoch), encodeCounts(st.counts))
	b.Queue(`SELECT h.first, h.n, h.id, h.numbers, EXISTS (SELECT FROM lineage_collection c WHERE c.store = $1) FROM lineage_head h WHERE h.store = $1 AND h.epoch = $2 FOR UPDATE OF h`,
		s.log.store, int64(epoch)).QueryRow(func(r pgx.Row) error {
		var first, n, id int64
		var counts []byte
		if err := r.Scan(&first, &n, &id, &counts, &st.collecting); err != nil {
			return err
		}
		st.head = head{uint64(first), backend.Cursor{Number: uint64(n), ID: uint64(id)}, epoch}
		return decodeCounts(counts, &st.counts)
	})
	// Nothing of an earlier attempt may be there.
	b.Queue(`DELETE FROM lineage_entry WHERE store = $1 AND epoch = $2 AND (SELECT n FROM lineage_head WHERE store = $1 AND epoch = $2) = 0`, s.log.store, int64(epoch))
	b.Queue(`DELETE FROM lineage_former WHERE store = $1 AND epoch = $2 AND (SELECT n FROM lineage_head WHERE store = $1 AND epoch = $2) = 0`, s.log.store, int64(epoch))
	return st, s.tx.read, send(ctx, conn, &b)
}

func (s *served) end(ctx context.Context, st state, entries []version) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	var b pgx.Batch
	queueDurability(&b, backend.Normal)
	s.log.queueOutput(&b, st.epoch, st.Number, output{entries: entries})
	s.log.queueHead(&b, st.head, st.counts, st.folded, 0)
	return s.tx.commit(ctx, &b)
}

func (s *served) abandon() { s.tx.rollback() }

// fill makes the entries that a store of an earlier version does not have. One process does it at a time. Another one waits,
// and continues where the first one ended.
func (e *Engine) fill(ctx context.Context) error {
	var r stateRead
	var last uint64
	for range mostRetries {
		err := e.log.snapshot(ctx, func(b *pgx.Batch) {
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
