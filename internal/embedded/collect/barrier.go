package collect

import (
	"sync"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/structure"
)

// Barrier hides from new commits what a collection found dead and is about to delete from the index. Dead content is
// unknown and is stored again. Dead spans, runs and span sets are not found, and their source ids are free.
// Everything that commits add after the barrier was raised is live. Readers do not see the barrier.
type Barrier struct {
	live *live.Set

	mu       sync.RWMutex
	contents map[contentStart]bool // stored after the barrier was raised
	runs     map[structure.RunID]bool
	sets     map[structure.SpanSetID]bool
	messages map[structure.Home]int64 // times of the last messages added after the barrier was raised
}

// contentStart is the start of a hash, as long as in keys of the index. At this length it is unique; in a live set it is shorter.
type contentStart [keys.HashPrefix]byte

// NewBarrier returns a barrier that hides what is not in a set.
func NewBarrier(l *live.Set) *Barrier {
	return &Barrier{
		live: l, contents: make(map[contentStart]bool),
		runs: make(map[structure.RunID]bool), sets: make(map[structure.SpanSetID]bool),
		messages: make(map[structure.Home]int64),
	}
}

// Live returns what was live when the barrier was raised. It must not be changed.
func (b *Barrier) Live() *live.Set { return b.live }

// Covers reports whether a commit was there when the barrier was raised, so that records of it may be dead. A nil barrier
// covers none.
func (b *Barrier) Covers(commit uint64) bool { return b != nil && commit <= b.live.Until }

// Filter removes dead records from a commit; a nil barrier removes nothing.
func (b *Barrier) Filter(c *structure.Commit) {
	if b != nil {
		b.live.Filter(c, new(live.Removed))
	}
}

// lastMessage returns the time of the last message in a home that was added after the barrier was raised.
func (b *Barrier) lastMessage(home structure.Home) (at int64, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	at, ok = b.messages[home]
	return at, ok
}

// NoteMessages records the times of the last messages of a commit.
func (b *Barrier) NoteMessages(effects *judge.Effects) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for home, at := range effects.LastMessages.All() {
		if known, ok := b.messages[home]; !ok || known < at {
			b.messages[home] = at
		}
	}
}

// NoteLater records content, runs and span sets of a commit after the barrier was
// raised.
func (b *Barrier) NoteLater(c *structure.Commit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range c.Records {
		switch r := r.(type) {
		case *structure.Block:
			b.contents[contentStart(r.ID[:])] = true
		case *structure.Chunk:
			b.contents[contentStart(r.Key[:])] = true
		case *structure.Run:
			b.runs[r.ID] = true
		case *structure.SpanSet:
			b.sets[r.ID] = true
		}
	}
}

// content reports whether the content whose id begins with start is dead.
func (b *Barrier) content(start []byte) bool {
	if b.live.HasContent(live.Hash(start)) {
		return false
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return !b.contents[contentStart(start)]
}

func (b *Barrier) run(id structure.RunID) bool {
	if _, ok := b.live.Run(id); ok {
		return false
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return !b.runs[id]
}

// Span reports whether a span is dead.
func (b *Barrier) Span(r structure.SpanRef) bool {
	if run, ok := b.live.Run(r.Run); ok {
		return run.Cut() && r.Seq > run.Live
	}
	return b.run(r.Run)
}

func (b *Barrier) set(id structure.SpanSetID) bool {
	if b.live.SpanSet(id) {
		return false
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return !b.sets[id]
}

// Dead reports whether an index entry belongs to something dead.
func (b *Barrier) Dead(key, value []byte) bool {
	switch key[0] {
	case keys.TableBlock, keys.TableChunk:
		return b.content(key[1:])
	case keys.TableRun:
		return b.run(structure.RunID(key[1:]))
	case keys.TableSpan:
		return b.Span(structure.SpanRef{Run: structure.RunID(key[1:17]), Seq: keys.ReadUint64(key[17:])})
	case keys.TableSpanSet:
		return b.set(structure.SpanSetID(key[1:]))
	case keys.TableSpanBySource:
		_, ref, err := keys.ReadLookup(key)
		return err == nil && b.Span(ref)
	}
	return false
}

// Refuses reports whether a run accepts no new spans because its last spans are dead.
func (b *Barrier) Refuses(run structure.RunID) bool {
	if b == nil {
		return false
	}
	r, _ := b.live.Run(run)
	return r.Cut()
}

// Clip returns last or, if smaller, the last live place of a run.
func (b *Barrier) Clip(run structure.RunID, last uint64) uint64 {
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
