package embedded

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/structure"
)

// commitFrame is a commit in the journal, with the offsets of its records.
type commitFrame struct {
	*structure.Commit
	frame   journal.Frame
	offsets []int
	size    int64
}

// history returns the commits of the view without the parts that are hidden from it.
func (v view) history() live.View {
	return live.View{View: v.View, History: func(from, until uint64) iter.Seq2[live.Commit, error] {
		return func(yield func(live.Commit, error) bool) {
			if from > until {
				return
			}
			start, err := v.at.engine.commitPosition(from)
			if err != nil {
				yield(live.Commit{}, err)
				return
			}
			for f, err := range v.at.engine.commitsAt(start, from, until, v.at.packs.hidden) {
				if !yield(live.Commit{Commit: f.Commit, Size: f.size}, err) {
					return
				}
			}
		}
	}}
}

func (e *Engine) commitsAt(start journal.Position, from, until uint64, hidden *barrier) iter.Seq2[commitFrame, error] {
	return func(yield func(commitFrame, error) bool) {
		for f, err := range e.journal.Frames(start) {
			if err != nil {
				yield(commitFrame{}, err)
				return
			}
			if f.Mark || f.Number < from {
				continue
			}
			if f.Number > until {
				return
			}
			c, err := e.decodeFrame(f)
			if err == nil {
				hidden.filter(c.Commit)
			}
			if !yield(c, err) || err != nil || f.Number == until {
				return
			}
		}
	}
}

// decodeFrame returns the commit of a frame as it is stored.
func (e *Engine) decodeFrame(f journal.Frame) (commitFrame, error) {
	c := commitFrame{Commit: &structure.Commit{Number: f.Number}, frame: f, size: f.End - f.Position.Offset}
	d, err := structure.NewDecoder(f.Payload)
	if err != nil {
		return c, e.frameFault(f, err)
	}
	c.Time = d.Time
	for d.More() {
		offset, r, err := d.Next()
		if err != nil {
			return c, e.frameFault(f, err)
		}
		c.offsets = append(c.offsets, offset)
		c.Records = append(c.Records, r)
	}
	c.offsets = slices.Clone(firstOffsets(f, c.offsets))
	return c, nil
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
