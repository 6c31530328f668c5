package importer

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Limits of a commit. A read of one message verifies the frame of its whole commit, so commits
// should not be large; each has a fixed cost, so they should not be small.
const (
	commitBytes   = 64 << 10
	commitRecords = 512
	recordBytes   = 64 // what a record takes besides its bodies and metadata
)

// maxRetained limits the memory of what a commit may have to be filled with again.
const maxRetained = 16 << 20

// filling is a commit being filled. It keeps what it was filled with, so that it can be filled again if others changed
// the store first.
type filling struct {
	*write.Batch
	loader   *loader
	added    added
	contents place.Contents
	placers  map[*threadState]*place.Placer
	fresh    bool  // see write.Try
	refused  error // why the last try was refused
	// state is what is read, nil before the first read. known counts what they placed in it.
	state    backend.Snapshot
	known    int
	items    []item
	retained int64 // bytes that items hold on to
	refilled bool  // others changed the store first
	// held is the conversation that continues in the next commit.
	held *loading
	// threads are those that the commit changes, firsts the ids of first messages in it.
	threads map[structure.ThreadID]bool
	firsts  map[string]bool
}

// item is a node that was added, or the end of a conversation if node is nil.
type item struct {
	*loading
	node *prepared
}

// added counts what a commit adds to a store, and the messages it shares.
type added struct {
	conversations, messages, shared int64
	bytes                           int64 // of new content
}

func (a *added) add(more added) {
	a.conversations += more.conversations
	a.messages += more.messages
	a.shared += more.shared
	a.bytes += more.bytes
}

// newFilling returns an empty commit. It need not be durable by itself: the import is synced at its
// end.
func (l *loader) newFilling() *filling {
	f := &filling{
		Batch: l.writer.Batch(), loader: l, contents: make(place.Contents), placers: make(map[*threadState]*place.Placer),
		threads: make(map[structure.ThreadID]bool), firsts: make(map[string]bool),
	}
	f.Durability = backend.Normal
	f.Places()
	return f
}

// retain keeps a node, or the end of a conversation, until the commit was made.
func (f *filling) retain(i item, bytes int64) {
	f.items, f.retained = append(f.items, i), f.retained+bytes
}

// release drops what an empty commit retains: all of it is in the store.
func (f *filling) release() { f.items, f.retained = nil, 0 }

func (f *filling) empty() bool {
	records, _ := f.Size()
	return records == 0
}

func (f *filling) full() bool {
	records, bytes := f.Size()
	return bytes+recordBytes*records >= commitBytes || records >= commitRecords || f.retained >= maxRetained
}

// state returns the state of the store that the current commit is made for. Everything that decides what it adds is read
// there: a newer state has spans that placers do not find.
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
func (f *filling) placerOf(t *threadState) (*place.Placer, error) {
	if p := f.placers[t]; p != nil {
		return p, nil
	}
	l := f.loader
	if _, err := l.state(); err != nil {
		return nil, err
	}
	p := place.New(l.ctx, l.writer, f.state, f.Batch, f.contents, &t.record, place.Rules{Base: t.base, Exact: !t.existed, Ends: t.ends, Own: t.ours, NewThread: t.stage != inStore, Fresh: f.fresh, Copies: t.copies, Kept: sameUsage(l.ctx, f.state)})
	f.placers[t] = p
	return p, nil
}

// forget lets placers read the store as it is now.
func (f *filling) forget() {
	clear(f.placers)
	if f.state != nil {
		f.state.Close()
	}
	f.state, f.known = nil, 0
}

// maxKnown is the number of messages that are looked up in one state of the store.
const maxKnown = 4096

// Fill implements write.Change. The commit is filled already when it is tried the first time.
func (f *filling) Fill(_ context.Context, _ *write.Batch, try write.Try) error {
	if try.Number == 0 {
		return nil
	}
	l := f.loader
	f.refilled = true
	f.Places()
	l.replaying = true
	defer func() { l.replaying = false }()
	shared := f.added.shared // they are known, and were not kept
	// Where the same span is refused again in a newer state, its run cannot be continued.
	f.fresh = try.Fresh && f.refused != nil && f.refused.Error() == try.Err.Error()
	f.added, f.refused = added{shared: shared}, try.Err
	clear(f.contents)
	f.forget()
	begun := make(map[*loading]bool)
	begin := func(st *loading) error {
		if begun[st] {
			return nil
		}
		begun[st] = true
		return l.resume(st)
	}
	for _, i := range f.items {
		err := begin(i.loading)
		switch {
		case err != nil:
		case i.lost:
		case i.node != nil:
			_, err = l.placeOne(i.loading, i.node)
		default:
			err = l.finish(i.loading)
		}
		if err != nil {
			return err
		}
	}
	if f.held == nil {
		return nil
	}
	if err := begin(f.held); err != nil || f.held.lost {
		return err
	}
	return l.hold(f.held.thread)
}

// flush commits the current commit and begins the next one.
func (l *loader) flush() error {
	f := l.next
	if f.empty() {
		f.forget()
		f.release()
		return context.Cause(l.ctx)
	}
	if l.open != nil && l.open.thread != nil && !l.open.lost {
		f.held = l.open
		if err := l.hold(l.open.thread); err != nil {
			return err
		}
	}
	receipt, err := l.writer.Do(l.ctx, f.Batch, f)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if f.held != nil {
		f.held.thread.commit(f.placers[f.held.thread])
	}
	f.forget()
	l.applied = true
	for _, id := range receipt.Known {
		delete(f.contents, id)
	}
	for _, size := range f.contents {
		f.added.bytes += size
	}
	l.total.add(f.added)
	l.writer.Release(f.Batch)
	l.next = l.newFilling()
	return nil
}

// sync makes everything durable that was applied.
func (l *loader) sync() error {
	if !l.applied || l.options.Unsynced {
		return nil
	}
	return l.engine.Sync(l.ctx)
}
