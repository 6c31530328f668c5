package embedded

import (
	"context"
	"encoding/binary"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// decide judges a commit and prepares its index entries. The write lock must be held, or the store is being opened.
func (e *Engine) decide(ctx context.Context, c *structure.Commit, replay bool) error {
	e.state.Begin(c.Number, replay)
	effects, err := e.judge.Judge(ctx, judge.Case{Commit: c, View: &e.state, Replay: replay, WholeTrees: e.collected.Load()})
	if err != nil {
		return err
	}
	e.builder.Begin(&e.state, effects)
	return e.builder.Entries(len(c.Records))
}

// publish makes a written commit visible.
func (e *Engine) publish(c *structure.Commit, f journal.Frame) {
	b := &e.builder
	e.filter.addContents(c)
	for id := range b.Runs.All() {
		if made, ok := structure.Made(id); ok {
			e.createdRuns.add(made)
		}
	}
	for l := range b.Lookups.All() {
		e.createdLookups.add(l)
	}
	for id, change := range b.Contexts.All() {
		if change.Created {
			e.noteContext(id)
		}
	}
	for id, change := range b.Remnants.All() {
		if change.Was == nil {
			e.noteContext(id)
		}
	}
	if barrier := e.barrier.Load(); barrier != nil && f.Number > barrier.live.Until {
		barrier.noteLater(c)
		barrier.noteMessages(b.Effects)
	}
	e.counts = e.counts.Plus(&b.Counts)
	id, since := e.identify(b, f)
	var many bool
	e.cache.Apply(b, func() {
		many = e.index.ApplyWith(index.State{
			Store: e.journal.StoreID(), Number: f.Number, ID: id, Since: since, Segment: f.Position.Segment, Offset: f.End,
			Counts: e.counts.Values(),
		}, b.Batch, b.Later())
	})
	if many {
		e.index.Settle()
	}
	e.arrivals.announce()
}

// noteContext notes that the id of a context is in use.
func (e *Engine) noteContext(id structure.ContextID) {
	if made, ok := structure.Made(id); ok {
		e.createdContexts.add(made)
	} else {
		e.filter.add(id[:])
	}
}

// source is the state of an engine as new commits see it. The write lock must be held, or the store is being opened.
type source Engine

var _ entries.Source = (*source)(nil)

func (s *source) Get(key []byte) ([]byte, bool, error) { return (*Engine)(s).known(key) }

func (s *source) GetBefore(key []byte, number uint64) ([]byte, bool, error) {
	return (*Engine)(s).get(key, number)
}

func (s *source) Scan(from, to []byte) iter.Seq2[index.Entry, error] {
	return func(yield func(index.Entry, error) bool) {
		snapshot := s.index.Snapshot()
		defer snapshot.Close()
		snapshot.Scan(from, to)(yield)
	}
}

func (s *source) View() *read.View { return (*Engine)(s).now().View }

func (s *source) AnyErased() bool { return s.counts.Erased > 0 }

func (s *source) Collecting() bool { return s.barrier.Load() != nil }

func (s *source) Closed(run structure.RunID) bool { return s.barrier.Load().refuses(run) }

func (s *source) Deleting(key []byte) (bool, error) {
	if b := s.barrier.Load(); b == nil || !b.dead(key, nil) {
		return false, nil
	}
	_, there, err := s.index.Get(key)
	return there, err
}

func (s *source) OwnUsages(state read.Getter, id content.ID, number uint64) ([]read.Usage, error) {
	var hidden func(structure.SpanRef) bool
	if b := s.barrier.Load(); b != nil && (number > b.live.Until || s.packs.Load().hidden != nil) {
		hidden = b.span // the index still has the dead spans
	}
	latest := (*Engine)(s).latest()
	defer latest.Close()
	return latest.view.OwnUsages(state, id, hidden)
}

// NewContext implements entries.Source. The filter does not contain ids created by this process
// after opening.
func (e *source) NewContext(id structure.ContextID) bool {
	if made, ok := structure.Made(id); ok {
		return e.createdContexts.isNew(made)
	}
	return e.filter.lacks(id[:])
}

// NewRun implements entries.Source. The filter has no runs.
func (e *source) NewRun(id structure.RunID) bool {
	made, ok := structure.Made(id)
	return ok && e.createdRuns.isNew(made)
}

// stock implements judge.Stored with the content that new commits may refer to. It is safe for
// concurrent use.
type stock Engine

var _ judge.Stored = (*stock)(nil)

// HasBlock implements judge.Stored.
func (s *stock) HasBlock(id content.ID) (bool, error) {
	e := (*Engine)(s)
	if e.filter.lacksContent(id[:]) {
		return false, nil
	}
	_, ok, err := e.known(keys.Block(id))
	if err != nil || !ok {
		return ok, err
	}
	_, erased, err := e.index.Get(keys.Of(keys.TableErased, id[:]))
	return ok && !erased, err
}

// HasChunk implements judge.Stored.
func (s *stock) HasChunk(k content.Key) (bool, error) {
	e := (*Engine)(s)
	if e.filter.lacksContent(k[:]) {
		return false, nil
	}
	_, ok, err := e.known(keys.Chunk(k))
	return ok, err
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
