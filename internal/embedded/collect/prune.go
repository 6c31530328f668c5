package collect

import (
	"bytes"
	"encoding/binary"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/structure"
)

// Prune builds the index of the filtered journal, and changes the current index to match it. raised is the state that
// Raise returned.
func (c *Collection) Prune(raised View) error {
	store := c.store
	filter, done := c.filter()
	rebuilt, remove, err := store.Engine.Rebuild(raised.Index.State().Number, NewBarrier(c.live), filter)
	if err != nil {
		return err
	}
	defer remove()
	defer rebuilt.Close()
	done()
	store.Write.Lock()
	store.Engine.Hide(c.barrier)
	store.Write.Unlock()
	store.Control.Agree.Lock()
	defer store.Control.Agree.Unlock()
	if err := c.change(raised.Index, rebuilt); err != nil {
		return err
	}
	store.Control.Pruned = true
	return nil
}

// batchEntries is the number of index entries that are changed in one critical section.
const batchEntries = 4 << 10

// change applies the difference between two states to the index, except for entries
// that later commits have changed.
func (c *Collection) change(now, after *index.Snapshot) error {
	p := pruning{store: &c.store, will: after}
	for d, err := range index.Differences(now.Scan(nil, nil), after.Scan(nil, nil)) {
		if err != nil {
			return err
		}
		if !d.Gone && !d.New && keys.SameSealed(d.Key, d.Was, d.Is) {
			continue
		}
		if err := p.add([2]index.Entry{{Key: d.Key, Value: d.Was}, {Key: d.Key, Value: d.Is}}); err != nil {
			return err
		}
	}
	return p.flush(func() {
		*c.store.Counts = c.store.Counts.Since(keys.CountersOf(now.State().Counts), keys.CountersOf(after.State().Counts))
		c.store.Cache.ForgetCurrent()
	}, Entry(c.live))
}

// pruning changes the current index in batches.
type pruning struct {
	store   *Store
	will    *index.Snapshot
	changes [][2]index.Entry
	lists   [][]byte // prefixes
}

// add adds a change of an entry. The keys of reflog entries and summaries contain the positions of their records in
// the commit. These shift when earlier records are removed, and later commits may have deleted some of the records.
// So all entries of a commit are changed as one list.
func (p *pruning) add(change [2]index.Entry) error {
	k := change[1].Key
	// Packs do not store the requests of their commits. A fold derives the order of threads. The pending entry is
	// written at the end.
	if k[0] == keys.TableRequests || k[0] == keys.TableThreadByTime || k[0] == keys.TablePendingCollection {
		return nil
	}
	if k[0] != keys.TableReflog && k[0] != keys.TableSummary {
		p.changes = append(p.changes, change)
	} else if list := k[:len(k)-8]; len(p.lists) == 0 || !bytes.Equal(p.lists[len(p.lists)-1], list) {
		p.lists = append(p.lists, list)
	}
	if len(p.changes)+len(p.lists) < batchEntries {
		return nil
	}
	return p.flush(func() {})
}

// flush applies the added changes and the entries in more. Before that it calls count, with the
// write lock held.
func (p *pruning) flush(count func(), more ...index.Entry) error {
	store := p.store
	if err := store.Index.Throttle(); err != nil {
		return err
	}
	store.Write.Lock()
	defer store.Write.Unlock()
	var batch []index.Entry
	for _, change := range p.changes {
		if change[1].Key[0] == keys.TableLastMessage {
			batch = append(batch, p.message(change[1]))
			continue
		}
		now, ok, err := store.Index.Get(change[0].Key)
		if err != nil {
			return err
		}
		if was := change[0].Value; ok == (was != nil) && bytes.Equal(now, was) {
			batch = append(batch, change[1])
		}
	}
	now := store.Index.Snapshot()
	defer now.Close()
	for _, list := range p.lists {
		changed, err := p.list(now, list)
		if err != nil {
			return err
		}
		batch = append(batch, changed...)
	}
	p.changes, p.lists = p.changes[:0], p.lists[:0]
	count()
	state := store.Index.State()
	state.Counts = store.Counts.Values()
	store.Index.Apply(state, append(batch, more...))
	return nil
}

// message returns the entry of the last message of a home. will is the entry as of the barrier;
// messages since then count too.
func (p *pruning) message(will index.Entry) index.Entry {
	home := keys.HomeOfMessage(will.Key)
	p.store.Cache.ForgetMessage(home)
	at, ok := p.store.Control.Barrier.Load().lastMessage(home)
	if was, n := binary.Varint(will.Value); ok && (n <= 0 || was < at) {
		will.Value = binary.AppendVarint(nil, at)
	}
	return will
}

// list returns the changes that replace the entries under a prefix by those of the new index, except entries that
// were deleted in the meantime.
func (p *pruning) list(now *index.Snapshot, prefix []byte) (batch []index.Entry, err error) {
	present := make(map[string]int)
	for e, err := range now.Scan(prefix, keys.PrefixEnd(prefix)) {
		if err != nil {
			return nil, err
		}
		inList, err := listed(e)
		if err != nil {
			return nil, err
		}
		present[inList]++
		batch = append(batch, index.Entry{Key: e.Key})
	}
	for e, err := range p.will.Scan(prefix, keys.PrefixEnd(prefix)) {
		if err != nil {
			return nil, err
		}
		will, err := listed(e)
		if err != nil {
			return nil, err
		}
		if present[will]--; present[will] >= 0 {
			batch = append(batch, e)
		}
	}
	return batch, nil
}

// listed returns what identifies the record of an entry: the id of a summary, which may lose its
// embedding, or a whole reflog entry.
func listed(e index.Entry) (string, error) {
	if e.Key[0] != keys.TableSummary {
		return string(e.Value), nil
	}
	s, err := keys.Record[*structure.Summary](structure.KindSummary, e.Value, "")
	if err != nil {
		return "", err
	}
	return string(s.ID[:]), nil
}
