package postgres

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Feed implements backend.Engine. It yields durable commits.
func (e *Engine) Feed(ctx context.Context, after backend.Cursor) iter.Seq2[*structure.Commit, error] {
	to, err := e.settle(ctx)
	return func(yield func(*structure.Commit, error) bool) {
		if err == nil {
			err = asExpired(e.ended(e.feed(ctx, after, to.Number, func(c *structure.Commit) bool { return yield(c, nil) })))
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// feed calls take with the commits after a cursor and up to a number, until it returns false.
func (e *Engine) feed(ctx context.Context, after backend.Cursor, to uint64, take func(*structure.Commit) bool) error {
	if err := e.log.checkCursor(ctx, after); err != nil {
		return err
	}
	f := &feeding{engine: e}
	for after.Number < to {
		if err := e.interruption(ctx); err != nil {
			return err
		}
		err := f.read(ctx, after)
		if err == nil && len(f.rows) == 0 { // the server lost commits
			return e.log.checkCursor(ctx, backend.Cursor{Number: to, ID: after.ID})
		}
		var commits []*structure.Commit
		if err == nil {
			commits, err = f.decode(ctx, after.Number, to)
		}
		if errors.Is(err, errDiverged) { // a collection, or the server lost the row
			f = &feeding{engine: e}
			if err = e.log.checkCursor(ctx, after); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		for _, c := range commits {
			if err := e.interruption(ctx); err != nil {
				return err
			}
			if !take(c) {
				return nil
			}
			after = backend.Cursor{Number: c.Number, ID: c.ID}
		}
		if f.at.Number >= to {
			return nil
		}
	}
	return nil
}

// interruption returns an error when the context ended or the engine was closed.
func (e *Engine) interruption(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e.closed.Load() {
		return errClosed
	}
	return nil
}

// feeding reads commits of the log, one part after another.
type feeding struct {
	engine *Engine
	begun  bool
	filter *live.Set // what is in use
	at     head      // the last row of which the commits were decoded
	rows   []logRow  // after it
}

// read reads the next rows, if there are none. The first call begins with the commit after a cursor.
func (f *feeding) read(ctx context.Context, after backend.Cursor) error {
	l := f.engine.log
	if !f.begun {
		pending, err := l.collected(ctx)
		if err != nil {
			return err
		}
		if f.at, err = l.before(ctx, after.Number+1, pending.epoch); err != nil {
			return err
		}
		f.filter, f.begun = pending.live, true
	}
	if len(f.rows) > 0 {
		return nil
	}
	return withRetry(ctx, func(ctx context.Context) (err error) {
		f.rows, _, err = l.tail(ctx, f.at, fewCommits)
		return err
	})
}

// mostDecoded limits the commits that are decoded at once, in bytes: data of rows may expand very much, and decoded
// commits take several times as much.
const mostDecoded = 8 << 20

// decode returns the commits of the first rows, between two numbers, without what was collected or erased. It is errCollected
// if the rows are of another epoch than the latest.
func (f *feeding) decode(ctx context.Context, after, to uint64) (all []*structure.Commit, err error) {
	size := 0
	at, rows := f.at, f.rows
	for len(rows) > 0 && size <= mostDecoded {
		sequenced, err := rows[0].commits()
		if err != nil {
			return nil, err
		}
		for _, s := range sequenced {
			if s.Number <= after || s.Number > to {
				continue
			}
			c, err := decode(&s)
			if err != nil {
				return nil, err
			}
			size += len(s.Payload)
			f.filter.Strip(c)
			all = append(all, c)
		}
		at, rows = at.after(&rows[0]), rows[1:]
	}
	err = f.engine.withReader(ctx, need{}, func(t *stateReader) error {
		if t.state.epoch != f.at.epoch {
			return errCollected
		}
		return t.stripErased(ctx, all)
	})
	if err == nil {
		f.at, f.rows = at, rows
	}
	return all, err
}

func decode(s *embedded.Sequenced) (*structure.Commit, error) {
	c, err := structure.DecodeCommit(s.Payload)
	if err != nil {
		if errors.Is(err, backend.ErrNewerFormat) || errors.Is(err, backend.ErrOlderFormat) {
			return nil, err
		}
		return nil, &backend.CorruptError{File: "the log", What: err.Error()}
	}
	c.Number, c.ID = s.Number, s.ID
	return c, nil
}

// stripErased removes bodies that are erased now, and embeddings of erased summaries.
func (t *stateReader) stripErased(ctx context.Context, commits []*structure.Commit) error {
	if keys.CountersOf(t.state.counts).Erased == 0 {
		return nil
	}
	var n read.Need
	for _, c := range commits {
		for _, r := range c.Records {
			if id, ok := read.Erasable(r); ok {
				n.Keys = append(n.Keys, keys.Of(keys.TableErased, id[:]))
			}
		}
	}
	if err := t.Prefetch(ctx, n); err != nil {
		return err
	}
	for _, c := range commits {
		for i, r := range c.Records {
			id, ok := read.Erasable(r)
			if !ok {
				continue
			}
			if _, erased, err := t.Get(keys.Of(keys.TableErased, id[:])); err != nil {
				return err
			} else if erased {
				read.Erase(c, i)
			}
		}
	}
	return nil
}

// The pause between two looks at the log grows while waiting.
const (
	shortWait = 10 * time.Millisecond
	longWait  = 500 * time.Millisecond
)

// Wait implements backend.Engine. It waits for durable commits.
func (e *Engine) Wait(ctx context.Context, after backend.Cursor) (backend.Cursor, error) {
	var seen head
	for pause := shortWait; ; pause = min(pause*3/2, longWait) {
		next := e.changed.wait()
		t, err := e.latest(ctx, need{})
		if err != nil {
			return backend.Cursor{}, err
		}
		if t.state.head != seen || pause == shortWait {
			seen = t.state.head
			switch err := e.log.checkCursor(ctx, after); {
			case errors.Is(err, errLagging):
				seen = head{} // it is checked again
			case err != nil:
				return backend.Cursor{}, e.ended(err)
			}
		}
		if t.state.Number > after.Number {
			at, err := e.settle(ctx)
			if err != nil || at.Number > after.Number {
				return at, err
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-next:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return backend.Cursor{}, context.Cause(ctx)
		}
		timer.Stop()
	}
}
