package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// errForeignIndex is returned when the index belongs to another journal.
var errForeignIndex = errors.New("the index belongs to another store")

// errAhead is returned to a reader when the index has commits that the journal has lost. What the
// index says of them cannot be read.
var errAhead = errors.New("the journal ends before the index")

// replay updates the index to the end of the journal.
func (e *Engine) replay(ctx context.Context) error {
	state := e.index.State()
	if state.Number > 0 && state.Store != e.journal.StoreID() {
		return errForeignIndex
	}
	e.counts = keys.CountersOf(state.Counts)
	e.id, e.since = state.ID, state.Since
	if err := e.loadSessions(); err != nil {
		return err
	}
	e.damage = cmp.Or(e.damage, e.journal.Damage())
	if e.journal.Cut() && state.Number > e.journal.Last() {
		return errAhead
	}
	if err := e.openPending(); err != nil {
		return err
	}
	if err := e.openPacks(); err != nil {
		return err
	}
	from := e.journal.After(journal.Position{Segment: state.Segment, Offset: state.Offset}, state.Number)
	var done int64
	total := e.journal.SizeFrom(from)
	var offsets []int
	for f, err := range e.journal.Frames(from) {
		if err != nil {
			if e.opt.ReadOnly && errors.Is(err, backend.ErrCorrupt) && !errors.Is(err, journal.ErrLookup) {
				e.damage = cmp.Or(e.damage, err)
				return nil // everything before the damage can be read
			}
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if !f.Mark && f.Number > state.Number {
			if offsets, err = e.replayFrame(f, offsets[:0]); err != nil {
				return fmt.Errorf("%s at byte %d: replay commit %d: %w", e.journal.SegmentName(f.Position.Segment), f.Position.Offset, f.Number, err)
			}
			if err := e.index.Throttle(); err != nil {
				return err
			}
		}
		done += f.End - f.Position.Offset
		if e.opt.Progress != nil {
			e.opt.Progress(done, max(total, done))
		}
	}
	e.saveHorizon(nil)
	e.rebuilt = state.Number == 0 && !e.opt.ReadOnly && slices.ContainsFunc(e.journal.Segments(), func(s journal.SegmentInfo) bool { return s.Packed })
	return nil
}

func (e *Engine) replayFrame(f journal.Frame, offsets []int) ([]int, error) {
	if b := e.collecting.Barrier.Load(); b.Covers(f.Number) {
		c, err := e.decodeFrame(f)
		if err != nil {
			return offsets, err
		}
		b.Filter(c.Commit)
		return offsets, e.replayCommit(c)
	}
	c, offsets, err := decodeOffsets(f.Payload, offsets)
	if err != nil {
		return offsets, err
	}
	return offsets, e.replayRecords(c, f, firstOffsets(f, offsets))
}

// replayRecords adds a commit to the index. offsets are those of its records in the frame's
// payload.
func (e *Engine) replayRecords(c *structure.Commit, f journal.Frame, offsets []int) error {
	c.Number = f.Number
	defer e.judge.Release()
	const replay = true
	if err := e.decide(context.Background(), c, replay); err != nil {
		return err
	}
	e.publish(c, f, offsets)
	return nil
}

// replayCommit adds a commit to the index. Nil records are skipped.
func (e *Engine) replayCommit(c commitFrame) error {
	n := 0
	for i, r := range c.Records {
		if r != nil {
			c.Records[n], c.offsets[n] = r, c.offsets[i]
			n++
		}
	}
	c.Records, c.offsets = c.Records[:n], c.offsets[:n]
	return e.replayRecords(c.Commit, c.frame, c.offsets)
}

// openPending raises the barrier of the pending collection of a store that is being opened.
// The index must account for the collection, or be empty.
func (e *Engine) openPending() error {
	pending := e.dir.pending()
	set, err := pending.Read(e.journal.StoreID(), e.journal.Last(), e.damage != nil)
	if errors.Is(err, backend.ErrCorrupt) && e.opt.ReadOnly {
		e.damage, err = cmp.Or(e.damage, err), nil
	}
	if err != nil {
		return err
	}
	value, counts, err := e.index.Get(keys.Of(keys.TablePendingCollection))
	if err != nil {
		return err
	}
	if !e.opt.ReadOnly {
		if err := pending.RemoveUnfinished(); err != nil {
			return err
		}
	}
	if set == nil {
		if counts {
			return collect.ErrPending
		}
		return nil
	}
	entry := collect.Entry(set)
	state := e.index.State()
	if state.Number > 0 && string(value) != string(entry.Value) {
		return collect.ErrPending
	}
	if !e.opt.ReadOnly {
		if _, err := e.dir.removeFollowers(false); err != nil {
			return err
		}
		e.collecting.Copies = true // the process that began the collection may not have pruned derived data, or compacted the index
	}
	if state.Number == 0 {
		state.Store = e.journal.StoreID()
		e.index.Apply(state, []index.Entry{entry})
	}
	b := collect.NewBarrier(set)
	e.setBarrier(b)
	e.collecting.Collected.Store(true)
	e.collecting.Pruned = true
	return e.passBefore(b, state.Number)
}

// passBefore tells the barrier about the commits after it that are in the index.
func (e *Engine) passBefore(b *collect.Barrier, last uint64) error {
	until := b.Live().Until
	for f, err := range e.journal.Frames(e.journal.Find(until + 1)) {
		if err != nil {
			return err
		}
		if f.Number > last {
			return nil
		}
		if f.Mark || f.Number <= until {
			continue
		}
		c, err := e.decodeFrame(f)
		if err != nil {
			return err
		}
		b.NoteLater(c.Commit)
	}
	return nil
}
