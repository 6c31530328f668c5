package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/structure"
)

// prune builds the index of the filtered journal, and changes the current index to match it.
func (c *collection) prune(raised *catalog) error {
	e := c.engine
	shadow, discard, err := e.shadow()
	if err != nil {
		return err
	}
	defer discard()
	shadow.setBarrier(newBarrier(c.live))
	shadow.beginWith(raised.packs.last)
	err = c.filter(e.commitsAt(journal.Position{}, 1, raised.State().Number, nil), func(f commitFrame) error {
		if err := shadow.replayCommit(f); err != nil {
			return fmt.Errorf("commit %d without what is dead: %w", f.Number, err)
		}
		return shadow.index.Throttle()
	})
	if err != nil {
		return err
	}
	e.write.Lock()
	e.hide(c.barrier)
	e.write.Unlock()
	after := shadow.index.Snapshot()
	defer after.Close()
	e.collecting.pruned.Lock()
	defer e.collecting.pruned.Unlock()
	if err := c.change(raised.Snapshot, after); err != nil {
		return err
	}
	e.collecting.done = true
	return nil
}

// batchEntries is the number of index entries that are changed in one critical section.
const batchEntries = 4 << 10

// change applies the difference between two states to the index, except for entries
// that later commits have changed.
func (c *collection) change(now, after *index.Snapshot) error {
	p := pruning{engine: c.engine, will: after}
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
		e := c.engine
		e.counts = e.counts.Since(keys.CountersOf(now.State().Counts), keys.CountersOf(after.State().Counts))
		e.cache.ForgetCurrent()
	}, pendingEntry(c.live))
}

// pruning changes the current index in batches.
type pruning struct {
	engine  *Engine
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
	e := p.engine
	if err := e.index.Throttle(); err != nil {
		return err
	}
	e.write.Lock()
	defer e.write.Unlock()
	var batch []index.Entry
	for _, change := range p.changes {
		if change[1].Key[0] == keys.TableLastMessage {
			batch = append(batch, p.message(change[1]))
			continue
		}
		now, ok, err := e.index.Get(change[0].Key)
		if err != nil {
			return err
		}
		if was := change[0].Value; ok == (was != nil) && bytes.Equal(now, was) {
			batch = append(batch, change[1])
		}
	}
	now := e.index.Snapshot()
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
	state := e.index.State()
	state.Counts = e.counts.Values()
	e.index.Apply(state, append(batch, more...))
	return nil
}

// message returns the entry of the last message of a home. will is the entry as of the barrier;
// messages since then count too.
func (p *pruning) message(will index.Entry) index.Entry {
	home := keys.HomeOfMessage(will.Key)
	e := p.engine
	e.cache.ForgetMessage(home)
	b := e.barrier.Load()
	b.mu.RLock()
	defer b.mu.RUnlock()
	at, ok := b.messages[home]
	if was, n := binary.Varint(will.Value); ok && (n <= 0 || was < at) {
		will.Value = binary.AppendVarint(nil, at)
	}
	return will
}

// list returns the changes that replace the entries under a prefix by those of the new index, except entries that
// were deleted in the meantime.
func (p *pruning) list(now *index.Snapshot, prefix []byte) (batch []index.Entry, err error) {
	there := make(map[string]int)
	for e, err := range now.Scan(prefix, keys.PrefixEnd(prefix)) {
		if err != nil {
			return nil, err
		}
		inList, err := listed(e)
		if err != nil {
			return nil, err
		}
		there[inList]++
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
		if there[will]--; there[will] >= 0 {
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
