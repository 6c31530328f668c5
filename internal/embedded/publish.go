package embedded

import (
	"context"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// decide judges a commit and prepares the entries that it makes. The lock on writing is
// held, or the store is being opened.
func (e *Engine) decide(ctx context.Context, c *structure.Commit, replay bool) error {
	e.state.begin(c.Number, replay)
	effects, err := e.judge.Judge(ctx, judge.Case{Commit: c, View: &e.state, Replay: replay, WholeTrees: e.collected.Load()})
	if err != nil {
		return err
	}
	e.builder.begin(e, c.Number, effects)
	return e.builder.entries(len(c.Records))
}

// publish makes a written commit visible.
func (e *Engine) publish(c *structure.Commit, f journal.Frame) {
	b := &e.builder
	e.filter.addContents(c)
	for id, info := range b.Runs.All() {
		e.runs.set(id, info)
		if made, ok := structure.Made(id); ok {
			e.madeRuns.add(made)
		}
	}
	for id, change := range b.Contexts.All() {
		if !change.Made {
			continue
		}
		if made, ok := structure.Made(id); ok {
			e.madeContexts.add(made)
		} else {
			e.filter.add(id[:])
		}
	}
	if barrier := e.barrier.Load(); barrier != nil && f.Number > barrier.live.until {
		barrier.passed(c)
		barrier.said(b.Effects)
	}
	e.counts = e.counts.Plus(&b.Counts)
	id, since := e.identify(b, f)
	var later index.Maker
	if b.later != nil {
		later = b.later
	}
	// A reader that sees the commit's number finds contexts as the commit leaves them.
	e.current.mu.Lock()
	many := e.index.ApplyMade(index.State{
		Store: e.journal.StoreID(), Number: f.Number, ID: id, Since: since, Segment: f.Position.Segment, Offset: f.End,
		Counts: e.counts.Values(),
	}, b.batch, later)
	e.current.take(b.Effects, (*backend.Context)(b.later))
	e.current.mu.Unlock()
	for _, m := range b.last {
		e.current.messages.set(m.home, m.at)
	}
	if many {
		e.index.Settle()
	}
	e.arrivals.announce()
}

// isNew reports that no context has the id. It may return false for an id that is new. The
// filter has no ids that were made in this process after opening. The lock on writing is held.
func (e *Engine) isNew(id structure.ContextID) bool {
	if made, ok := structure.Made(id); ok {
		return e.madeContexts.isNew(made)
	}
	return e.filter.lacks(id[:])
}

// isNewRun is isNew for runs. The filter has no runs.
func (e *Engine) isNewRun(id structure.RunID) bool {
	made, ok := structure.Made(id)
	return ok && e.madeRuns.isNew(made)
}

// stock tells the judge which content the engine has for new commits. It is safe for
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
