package postgres

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/lineage-store/lineage/content"
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
	if err := e.log.checkCursor(ctx, after); err != nil || after.Number >= to {
		return err
	}
	var filter *live.Set
	var at head
	var rows []row // after at
	begun := false
	for after.Number < to {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if e.closed.Load() {
			return errClosed
		}
		if !begun {
			pending, err := e.log.collected(ctx)
			if err != nil {
				return err
			}
			if at, err = e.log.before(ctx, after.Number+1, pending.epoch); err != nil {
				return err
			}
			filter, begun = pending.live, true
		}
		var err error
		if len(rows) == 0 {
			err = withRetry(ctx, func(ctx context.Context) (err error) {
				rows, _, err = e.log.tail(ctx, at, fewCommits)
				return err
			})
		}
		var commits []*structure.Commit
		var of []row
		if err == nil {
			if len(rows) == 0 { // the server lost commits
				return e.log.checkCursor(ctx, backend.Cursor{Number: to, ID: after.ID})
			}
			commits, of, err = e.commits(ctx, rows, filter, after.Number, to, at.epoch)
		}
		if errors.Is(err, errDiverged) { // a collection, or the server lost the row
			begun, rows = false, nil
			if err = e.log.checkCursor(ctx, after); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		for _, c := range commits {
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case e.closed.Load():
				return errClosed
			}
			if !take(c) {
				return nil
			}
			after = backend.Cursor{Number: c.Number, ID: c.ID}
		}
		at, rows = at.after(&of[len(of)-1]), rows[len(of):]
		if at.Number >= to {
			return nil
		}
	}
	return nil
}

// mostDecoded limits the commits that are decoded at once, in bytes: data of rows may expand very much, and decoded
// commits take several times as much.
const mostDecoded = 8 << 20

// commits returns the commits of rows, between two numbers, without what was collected or erased, and the rows that it
// decoded. It is errCollected if the rows are of another epoch than the latest.
func (e *Engine) commits(ctx context.Context, rows []row, filter *live.Set, after, to, epoch uint64) (all []*structure.Commit, of []row, err error) {
	size := 0
	for i := range rows {
		if size > mostDecoded {
			rows = rows[:i]
			break
		}
		sequenced, err := rows[i].commits()
		if err != nil {
			return nil, nil, err
		}
		for _, s := range sequenced {
			if s.Number <= after || s.Number > to {
				continue
			}
			c, err := decode(&s)
			if err != nil {
				return nil, nil, err
			}
			size += len(s.Payload)
			filter.Strip(c)
			all = append(all, c)
		}
	}
	err = e.withTable(ctx, need{}, func(t *table) error {
		if t.state.epoch != epoch {
			return errCollected
		}
		return t.stripErased(ctx, all)
	})
	return all, rows, err
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

// erasable returns the content of a record that may be erased.
func erasable(r structure.Record) (id content.ID, ok bool) {
	switch r := r.(type) {
	case *structure.Block:
		return r.ID, true
	case *structure.Summary:
		return r.Content, true
	}
	return id, false
}

// stripErased removes bodies that are erased now, and embeddings of erased summaries.
func (t *table) stripErased(ctx context.Context, commits []*structure.Commit) error {
	if keys.CountersOf(t.state.counts).Erased == 0 {
		return nil
	}
	var n read.Need
	for _, c := range commits {
		for _, r := range c.Records {
			if id, ok := erasable(r); ok {
				n.Keys = append(n.Keys, keys.Of(keys.TableErased, id[:]))
			}
		}
	}
	if err := t.Prefetch(ctx, n); err != nil {
		return err
	}
	for _, c := range commits {
		for i, r := range c.Records {
			id, ok := erasable(r)
			if !ok {
				continue
			}
			if _, erased, err := t.Get(keys.Of(keys.TableErased, id[:])); err != nil {
				return err
			} else if !erased {
				continue
			}
			switch r := r.(type) {
			case *structure.Block:
				r.Body = nil
			case *structure.Summary:
				c.Records[i] = r.WithoutEmbedding()
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
			if err := e.log.checkCursor(ctx, after); err != nil {
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
