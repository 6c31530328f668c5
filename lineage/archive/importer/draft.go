package importer

import (
	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Limits of a commit. A read of one message verifies the frame of its whole commit, so commits
// should not be large; each has a fixed cost, so they should not be small.
const (
	commitBytes   = 64 << 10
	commitRecords = 512
	recordBytes   = 64 // approximate size of a record without bodies and metadata
)

// maxKnown limits the messages that are looked up in one snapshot.
const maxKnown = 4096

// maxRetained limits the memory of the items that a commit keeps so that it can be filled again.
const maxRetained = 16 << 20

// reset empties the commit, which gets the current time.
func (f *commitDraft) reset() {
	f.Reset(f.loader.writer.Now())
	f.Places()
}

// newDraft returns an empty commit. It is not synced by itself: the import is synced at its end.
func (l *loader) newDraft() *commitDraft {
	f := &commitDraft{
		Batch: l.writer.Batch(), loader: l, contents: make(place.Contents), placers: make(map[*threadState]*place.Placer),
		threads: make(map[structure.ThreadID]bool), firsts: make(map[string]bool),
	}
	f.Durability = backend.Normal
	f.Places()
	return f
}

// retain keeps a node, or the end of a conversation, until the commit has been made.
func (f *commitDraft) retain(i item, bytes int64) {
	f.items, f.retained = append(f.items, i), f.retained+bytes
	f.partial = f.partial || i.node != nil
}

// retainPart counts nodes after they were loaded, if items keep them. While they are loaded, they are in memory anyway.
func (f *commitDraft) retainPart(nodes []archive.Node) {
	if f.partial {
		f.retained, f.partial = f.retained+archive.NodesSize(nodes), false
	}
}

// retainRest counts the text of a conversation's rest after it was loaded, if nodes of items are parts of it.
func (f *commitDraft) retainRest(st *loading, c *archive.Conversation) {
	if last := len(f.items) - 1; c.Rest != nil && last >= 0 && f.items[last].loading == st {
		f.retained += c.Size() - archive.NodesSize(c.Nodes)
	}
}

// release drops the items of a commit that turned out empty, because the store has all of them.
func (f *commitDraft) release() { f.items, f.retained, f.partial = nil, 0, false }

func (f *commitDraft) empty() bool {
	records, _ := f.Size()
	return records == 0
}

func (f *commitDraft) full() bool {
	records, bytes := f.Size()
	return bytes+recordBytes*records >= commitBytes || records >= commitRecords || f.retained >= maxRetained
}

// state returns the snapshot that the current commit is based on. Everything that decides what the commit adds must
// be read from it, because a newer snapshot can have spans that the placers do not find.
func (l *loader) state() (backend.Snapshot, error) {
	f := l.next
	if f.state == nil {
		var err error
		if f.state, err = l.engine.Snapshot(l.ctx); err != nil {
			return nil, err
		}
	}
	return f.state, nil
}

// placerOf returns the placer for a thread.
func (f *commitDraft) placerOf(t *threadState) (*place.Placer, error) {
	if p := f.placers[t]; p != nil {
		return p, nil
	}
	l := f.loader
	if _, err := l.state(); err != nil {
		return nil, err
	}
	p := place.New(l.ctx, l.writer, f.state, f.Batch, f.contents, &t.record, place.Rules{Base: t.base, Exact: !t.existed, Ends: t.ends, Own: t.created, NewThread: t.stage != inStore, Fresh: f.fresh, Copies: t.copies, Kept: sameUsage(l.ctx, f.state)})
	f.placers[t] = p
	return p, nil
}

// forget drops the snapshot and the placers, so that the next read sees the current state of the store.
func (f *commitDraft) forget() {
	clear(f.placers)
	if f.state != nil {
		f.state.Close()
	}
	f.state, f.known = nil, 0
}
