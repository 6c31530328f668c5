package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Filling makes the entries of an epoch from the log: of a store that an earlier version wrote, of the next epoch during a
// collection, and of a check. It takes many rows at once.

// filling replays the log into entries, from where they are.
type filling struct {
	log     *log
	judging *judging
	epoch   uint64 // of the entries
	of      uint64 // the epoch in which the log is read
	filter  *live.Set
	report  backend.CollectReport // of what was filtered
	changed []uint64              // rows with something that was filtered
	into    sink
	at      head // the row up to which there are entries
}

// sink takes entries.
type sink interface {
	// begin returns the state that the entries account for, with its epoch, and how it is read.
	begin(ctx context.Context, epoch uint64) (state, func(context.Context, need) (found, error), error)
	// end writes entries, with the state that they make. It may not end without begin.
	end(ctx context.Context, is state, entries []version) error
	// abandon ends without writing.
	abandon()
}

// fillTo replays rows until the entries account for a commit, and reports how far it is.
func (f *filling) fillTo(ctx context.Context, number uint64, progress func(done uint64) error) error {
	failed := time.Now() // or when it last got on
	for pause := shortPause; ; {
		more, err := f.some(ctx, number)
		if (lost(err) || uncertain(err)) && ctx.Err() == nil && time.Since(failed) < patience { // it begins where the entries are
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, longPause)
			continue
		}
		pause, failed = shortPause, time.Now()
		if err == nil && progress != nil {
			err = progress(f.at.Number)
		}
		if err != nil || !more {
			return explain(err)
		}
	}
}

// some replays some rows, and reports whether there may be more before a number. It reads the log before it begins, so that
// it needs one connection at a time.
func (f *filling) some(ctx context.Context, number uint64) (more bool, err error) {
	from := f.at
	from.epoch = f.of
	var rows []row
	if from.Number < number {
		err = again(ctx, func(ctx context.Context) (err error) {
			rows, _, err = f.log.tail(ctx, from, fewCommits)
			return err
		})
		if errors.Is(err, errDiverged) && !errors.Is(err, errCollected) {
			err = &backend.CorruptError{File: "the log", What: fmt.Sprintf("it does not have row %d, for which there are entries", from.first)}
		}
	}
	if err != nil || len(rows) == 0 {
		return false, err
	}
	is, fetch, err := f.into.begin(ctx, f.epoch)
	defer func() {
		if err != nil {
			f.judging.state.Cache.Forget()
			f.into.abandon()
		}
	}()
	if err != nil {
		return false, err
	}
	if is.head != f.at { // there were entries before, or another process makes them as well
		f.judging.state.Cache.Forget()
		f.at = is.head
		f.into.abandon()
		return true, nil
	}
	table := newTable(ctx, newCache(is, DefaultCache), f.log.identity, is, fetch)
	f.judging.begin(table)
	var all []replayed
	size := 0
	for i := range rows {
		if size > mostFilled || rows[i].first > number {
			rows = rows[:i]
			break
		}
		commits, changed, err := rows[i].left(f.filter, &f.report)
		if err != nil {
			return false, err
		}
		if changed {
			f.changed = append(f.changed, rows[i].first)
		}
		for _, s := range commits {
			c, offsets, err := embedded.DecodeOffsets(s.Payload)
			if err != nil {
				return false, fmt.Errorf("commit %d: %w", s.Number, &backend.CorruptError{File: fmt.Sprintf("row %d of the log", rows[i].first), What: err.Error()})
			}
			c.Number = s.Number
			size += len(s.Payload)
			all = append(all, replayed{&rows[i], s, c, offsets})
		}
	}
	if err := f.judging.replayAll(ctx, all); err != nil {
		return false, err
	}
	is.head = is.head.after(&rows[len(rows)-1])
	is.counts = f.judging.counts.Values()
	m, err := f.judging.made(is.Number, true)
	if err != nil {
		return false, err
	}
	is.folded = m.folded
	if err := f.into.end(ctx, is, m.entries); err != nil {
		return false, err
	}
	f.at = is.head
	return is.Number < number, nil
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

// served is a sink on the server. Each begin locks the entries of the epoch against others who fill them.
type served struct {
	log *log
	t   *writeTx
}

func (s *served) begin(ctx context.Context, epoch uint64) (is state, fetch func(context.Context, need) (found, error), err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	conn, err := s.log.acquire(ctx)
	if err != nil {
		return is, nil, err
	}
	s.t = &writeTx{s.log, conn, epoch}
	var b pgx.Batch
	begin(&b)
	b.Queue(`INSERT INTO lineage_head (store, epoch, first, n, id, numbers, folded, unfolded) VALUES ($1, $2, 0, 0, 0, $3, 0, 0) ON CONFLICT DO NOTHING`, s.log.store, int64(epoch), encodeCounts(is.counts))
	b.Queue(`SELECT h.first, h.n, h.id, h.numbers, EXISTS (SELECT FROM lineage_collection c WHERE c.store = $1) FROM lineage_head h WHERE h.store = $1 AND h.epoch = $2 FOR UPDATE OF h`,
		s.log.store, int64(epoch)).QueryRow(func(r pgx.Row) error {
		var first, n, id int64
		var counts []byte
		if err := r.Scan(&first, &n, &id, &counts, &is.collecting); err != nil {
			return err
		}
		is.head = head{uint64(first), backend.Cursor{Number: uint64(n), ID: uint64(id)}, epoch}
		return decodeCounts(counts, &is.counts)
	})
	// Nothing of an earlier attempt may be there.
	b.Queue(`DELETE FROM lineage_entry WHERE store = $1 AND epoch = $2 AND (SELECT n FROM lineage_head WHERE store = $1 AND epoch = $2) = 0`, s.log.store, int64(epoch))
	b.Queue(`DELETE FROM lineage_former WHERE store = $1 AND epoch = $2 AND (SELECT n FROM lineage_head WHERE store = $1 AND epoch = $2) = 0`, s.log.store, int64(epoch))
	return is, s.t.read, send(ctx, conn, &b)
}

func decodeCounts(b []byte, into *index.Counts) error {
	if len(b) != 8*len(into) {
		return &backend.CorruptError{File: "lineage_head", What: "the counts"}
	}
	for i := range into {
		into[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return nil
}

func (s *served) end(ctx context.Context, is state, entries []version) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	var b pgx.Batch
	queueDurability(&b, backend.Normal)
	s.log.queueMade(&b, is.epoch, is.Number, made{entries: entries})
	s.log.queueHead(&b, is.head, is.counts, is.folded, 0)
	return s.t.commit(ctx, &b)
}

func (s *served) abandon() { s.t.rollback() }

// fill adds the entries that a store of an earlier version does not have. One process does it at a time; another one waits
// and goes on where the first one ended.
func (e *Engine) fill(ctx context.Context) error {
	var is state
	var last uint64
	for range mostRetries {
		err := e.log.snapshot(ctx, func(b *pgx.Batch) {
			var horizon uint64
			var there bool
			is, last = state{}, 0
			e.log.queueState(b, known{}, &is, &horizon, &there)
			b.Queue(`SELECT coalesce((SELECT n + count - 1 FROM lineage_log WHERE store = $1 ORDER BY n DESC LIMIT 1), 0)`, e.log.store).QueryRow(func(r pgx.Row) error {
				return r.Scan(&last)
			})
		})
		if err != nil {
			return err
		}
		if is.Number >= last {
			e.cache.Store(newCache(is, e.o.CacheBytes))
			return nil
		}
		pending, err := e.log.collected(ctx)
		if err != nil {
			return err
		}
		e.o.Logger.Info("the store of an earlier version is prepared", "store", e.o.Store, "commits", last-is.Number)
		f := &filling{log: e.log, judging: newJudging(&e.log.clock), epoch: pending.epoch, of: pending.epoch, filter: pending.live, into: &served{log: e.log}, at: head{epoch: pending.epoch}}
		err = f.fillTo(ctx, last, func(done uint64) error {
			if e.o.Progress != nil {
				e.o.Progress(int64(done), int64(max(last, done)))
			}
			return nil
		})
		if err != nil && !errors.Is(err, errCollected) && !lost(err) {
			return err
		}
	}
	return fmt.Errorf("prepare the store: it changed %d times: %w", mostRetries, backend.ErrConflict)
}

// before returns the row before the one with a commit.
func (l *log) before(ctx context.Context, number, epoch uint64) (h head, err error) {
	err = again(ctx, func(ctx context.Context) error {
		if h, err = l.newest(ctx, number); err == nil && h.first > 0 && h.Number >= number {
			h, err = l.newest(ctx, h.first-1)
		}
		h.epoch = epoch
		return err
	})
	return h, err
}
