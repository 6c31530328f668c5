package embedded

import (
	"context"
	"encoding/binary"

	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// decide judges a commit and prepares its index entries. The write lock must be held, or the store is being opened.
func (e *Engine) decide(ctx context.Context, c *structure.Commit, replay bool) error {
	e.state.Begin(c.Number, replay)
	effects, err := e.judge.Judge(ctx, judge.Case{Commit: c, View: &e.state, Replay: replay, WholeTrees: e.collecting.Collected.Load()})
	if err != nil {
		return err
	}
	e.builder.Begin(&e.state, effects)
	return e.builder.Entries(len(c.Records))
}

// publish makes a written commit visible. offsets are those of its records in the frame.
func (e *Engine) publish(c *structure.Commit, f journal.Frame, offsets []int) {
	b := &e.builder
	b.Locate(f, offsets, e.packs.Load())
	e.sessions.record(f, b.Put)
	e.absent.stored(c, b)
	if barrier := e.collecting.Barrier.Load(); barrier != nil && !barrier.Covers(f.Number) {
		barrier.NoteLater(c)
		barrier.NoteMessages(b.Effects)
	}
	e.counts = e.counts.Plus(&b.Counts)
	id, since := e.identify(b, f)
	var throttle bool
	e.cache.Apply(b, func() {
		throttle = e.index.ApplyWith(index.State{
			Store: e.journal.StoreID(), Number: f.Number, ID: id, Since: since, Segment: f.Position.Segment, Offset: f.End,
			Counts: e.counts.Values(),
		}, b.Batch, b.Later())
	})
	if throttle {
		e.index.Settle()
	}
	e.arrivals.announce()
}

// identify returns the id of a commit, and the first commit with that id. A new id gets an index
// entry.
func (e *Engine) identify(b *entries.Builder, f journal.Frame) (id, since uint64) {
	if f.ID == 0 || f.ID == e.id {
		return e.id, e.since
	}
	e.id, e.since = f.ID, f.Number
	b.Put(keys.Of(keys.TableCommitID, keys.Uint64(f.Number)), binary.LittleEndian.AppendUint64(nil, f.ID))
	return e.id, e.since
}

// follows is RequireAt for the latest state. It rarely needs the index.
func (e *Engine) follows(c backend.Cursor) error {
	if s := e.index.State(); c.ID == s.ID && s.Since <= c.Number && c.Number <= s.Number || c.Number == 0 || c.ID == 0 {
		return nil
	}
	v := e.now()
	defer v.Close()
	return v.RequireAt(c)
}
