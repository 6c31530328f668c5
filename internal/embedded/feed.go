package embedded

import (
	"context"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Feed implements backend.Engine.
func (e *Engine) Feed(ctx context.Context, after backend.Cursor) iter.Seq2[*structure.Commit, error] {
	head := e.index.Number()
	return sequence(&e.reads, func(v view) iter.Seq2[*structure.Commit, error] { return v.feed(ctx, after, head) })
}

// feed yields the commits after a cursor, up to a number. Records are read from the
// view's files, but content erased since then is left out.
func (v view) feed(ctx context.Context, after backend.Cursor, head uint64) iter.Seq2[*structure.Commit, error] {
	s := v.at.store
	return func(yield func(*structure.Commit, error) bool) {
		if err := v.RequireAt(after); err != nil {
			yield(nil, err)
			return
		}
		from := after.Number + 1
		if from > head {
			return
		}
		start, err := s.commitPosition(from)
		if err != nil {
			yield(nil, err)
			return
		}
		id, err := v.IDOf(from)
		if err != nil {
			yield(nil, err)
			return
		}
		for f, err := range v.at.files.Commits(start, from) {
			var c *structure.Commit
			switch {
			case err != nil:
			case ctx.Err() != nil:
				err = context.Cause(ctx)
			case f.Mark || f.Number < from:
				continue
			case f.Number > head:
				return // added after Feed was called
			default:
				if f.ID != 0 {
					id = f.ID
				}
				if c, err = v.decode(f); err == nil {
					c.ID = id
				}
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// decode returns the commit of a frame, without erased bodies, the embeddings of erased
// summaries, and records that are hidden from the view.
func (v view) decode(f journal.Frame) (*structure.Commit, error) {
	s := v.at.store
	c := f.Commit
	if c == nil {
		var err error
		if c, err = structure.DecodeCommit(f.Payload); err != nil {
			return nil, s.frameFault(f, err)
		}
		c.Number = f.Number
	}
	if hidden := v.at.packs.hidden; hidden != nil {
		hidden.Live().Strip(c)
	}
	if keys.CountersOf(s.index.State().Counts).Erased == 0 {
		return c, nil
	}
	for i, r := range c.Records {
		id, ok := read.Erasable(r)
		if !ok {
			continue
		}
		_, erased, err := s.index.Get(keys.Of(keys.TableErased, id[:]))
		if err != nil {
			return nil, err
		}
		if erased {
			read.Erase(c, i)
		}
	}
	return c, nil
}

// Wait implements backend.Engine.
func (e *Engine) Wait(ctx context.Context, after backend.Cursor) (backend.Cursor, error) {
	if err := e.begin(); err != nil {
		return backend.Cursor{}, err
	}
	err := e.follows(after)
	e.end()
	if err != nil {
		return backend.Cursor{}, err
	}
	for {
		arrived := e.arrivals.wait()
		if e.closed.Load() {
			return backend.Cursor{}, fmt.Errorf("store: %w", backend.ErrClosed)
		}
		if e.index.Number() > after.Number {
			return read.CursorOf(e.index.State()), nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return backend.Cursor{}, context.Cause(ctx)
		}
	}
}
