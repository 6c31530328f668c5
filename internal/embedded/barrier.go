package embedded

import (
	"sync"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/structure"
)

// barrier hides from new commits what a collection found dead and is about to delete from the index. Dead content is
// unknown and is stored again. Dead spans, runs and span sets are not found, and their source ids are free.
// Everything that commits add after the barrier was raised is live. Readers do not see the barrier.
type barrier struct {
	live *live.Set

	mu       sync.RWMutex
	contents map[uint64]bool // stored after the barrier was raised
	runs     map[structure.RunID]bool
	sets     map[structure.SpanSetID]bool
	messages map[structure.Home]int64 // times of the last messages added after the barrier was raised
}

func newBarrier(l *live.Set) *barrier {
	return &barrier{
		live: l, contents: make(map[uint64]bool),
		runs: make(map[structure.RunID]bool), sets: make(map[structure.SpanSetID]bool),
		messages: make(map[structure.Home]int64),
	}
}

// filter removes dead records from a commit; a nil barrier removes nothing.
func (b *barrier) filter(c *structure.Commit) {
	if b != nil {
		b.live.Filter(c, new(live.Counts))
	}
}

// noteMessages records the times of the last messages of a commit.
func (b *barrier) noteMessages(effects *judge.Effects) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for home, at := range effects.LastMessages.All() {
		if known, ok := b.messages[home]; !ok || known < at {
			b.messages[home] = at
		}
	}
}

// noteLater records content, runs and span sets of a commit after the barrier was
// raised.
func (b *barrier) noteLater(c *structure.Commit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range c.Records {
		switch r := r.(type) {
		case *structure.Block:
			b.contents[live.Hash(r.ID[:])] = true
		case *structure.Chunk:
			b.contents[live.Hash(r.Key[:])] = true
		case *structure.Run:
			b.runs[r.ID] = true
		case *structure.SpanSet:
			b.sets[r.ID] = true
		}
	}
}

// content reports whether the content whose id begins with start is dead.
func (b *barrier) content(start []byte) bool {
	h := live.Hash(start)
	if b.live.HasContent(h) {
		return false
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return !b.contents[h]
}

func (b *barrier) run(id structure.RunID) bool {
	if _, ok := b.live.Run(id); ok {
		return false
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return !b.runs[id]
}

func (b *barrier) span(r structure.SpanRef) bool {
	if run, ok := b.live.Run(r.Run); ok {
		return run.Cut() && r.Seq > run.Live
	}
	return b.run(r.Run)
}

func (b *barrier) set(id structure.SpanSetID) bool {
	if b.live.SpanSet(id) {
		return false
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return !b.sets[id]
}

// dead reports whether an index entry belongs to something dead.
func (b *barrier) dead(key, value []byte) bool {
	switch key[0] {
	case keys.TableBlock, keys.TableChunk:
		return b.content(key[1:])
	case keys.TableRun:
		return b.run(structure.RunID(key[1:]))
	case keys.TableSpan:
		return b.span(structure.SpanRef{Run: structure.RunID(key[1:17]), Seq: keys.ReadUint64(key[17:])})
	case keys.TableSpanSet:
		return b.set(structure.SpanSetID(key[1:]))
	case keys.TableSpanBySource:
		_, ref, err := keys.ReadLookup(key)
		return err == nil && b.span(ref)
	}
	return false
}

// refuses reports whether a run accepts no new spans because its last spans are dead.
func (b *barrier) refuses(run structure.RunID) bool {
	if b == nil {
		return false
	}
	r, _ := b.live.Run(run)
	return r.Cut()
}

// clip returns last or, if smaller, the last live place of a run.
func (b *barrier) clip(run structure.RunID, last uint64) uint64 {
	if r, ok := b.live.Run(run); ok {
		if r.Cut() {
			return min(r.Live, last)
		}
		return last
	}
	if b.run(run) {
		return 0
	}
	return last
}
