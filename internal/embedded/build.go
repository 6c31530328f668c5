package embedded

import (
	"bytes"
	"encoding/binary"

	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// builder turns what a commit changes into index entries, the same for a commit that is
// new and for one that is replayed.
//
// Work comes in two steps, because the place of a commit is known only once it is written:
// entries may fail and changes nothing outside; locate cannot fail.
type builder struct {
	*judge.Effects
	engine *Engine
	number uint64

	slab  slab
	batch []index.Entry
	later *statedContext // makes the rest of the entries; nil when there are no more
	last  []lastOf       // the times of last messages that the commit changed or looked up

	// below is the packs below the index, and packed whether the commit is in one of
	// them and found there.
	below  *layer
	packed bool
}

// begin makes the engine's builder ready for a commit. The lock on writing is held, or
// the store is being opened.
func (b *builder) begin(e *Engine, number uint64, effects *judge.Effects) {
	b.engine, b.number, b.Effects, b.later = e, number, effects, nil
	b.slab.buf = b.slab.buf[:0] // the index copies what it is given
	if cap(b.batch) > 1<<12 {
		b.batch = nil // do not hold on to the largest commit ever
	}
	if len(b.batch) > 64 {
		clear(b.batch) // of a few it may hold on to what they were
	}
	b.batch, b.last = b.batch[:0], b.last[:0]
}

// lastOf is the time of the last message of a home, in Unix milliseconds.
type lastOf struct {
	home structure.Home
	at   int64
}

// put adds an entry; a nil value deletes the key.
func (b *builder) put(key, value []byte) {
	b.batch = append(b.batch, index.Entry{Key: key, Value: value})
}

var present = []byte{} // the value of keys that only have to be there

// putRecord adds an entry of a record. It was part of a commit that could be written, or
// read.
func (b *builder) putRecord(key []byte, r structure.Record) {
	start := b.slab.begin()
	b.slab.buf, _ = structure.AppendRecord(b.slab.buf, r)
	b.put(key, b.slab.end(start))
}

// entries adds the entries that do not depend on where the commit is written.
func (b *builder) entries(records int) error {
	for id, t := range b.Threads.All() {
		k := b.slab.key(tableThread, id[:])
		switch {
		case t.Now == nil:
			b.put(k, nil)
			b.put(threadEndKey(id), nil)
			b.texts(t.Was, nil)
			continue
		case t.Was == nil:
			b.put(threadEndKey(id), present)
		}
		b.texts(t.Was, t.Now)
		b.putRecord(k, t.Now)
	}
	for id, c := range b.Contexts.All() {
		if err := b.context(id, &c, records); err != nil {
			return err
		}
	}
	for id, at := range b.Tips.All() {
		b.tip(id, at)
	}
	b.names()
	for id, info := range b.Runs.All() {
		if err := b.requireGone(structure.KindRun, id.String(), tableRun, id[:]); err != nil {
			return err
		}
		b.run(id, info)
	}
	for _, run := range b.Cuts {
		b.put(b.slab.key(tableCut, run[:]), present)
	}
	for id, s := range b.Sets.All() {
		if err := b.requireGone(structure.KindSpanSet, id.String(), tableSpanSet, id[:]); err != nil {
			return err
		}
		b.putRecord(b.slab.key(tableSpanSet, id[:]), s)
	}
	for l, span := range b.Lookups.All() {
		b.put(lookupKey(l), appendRef(nil, span))
	}
	b.notes()
	if err := b.values(); err != nil {
		return err
	}
	if err := b.erasures(); err != nil {
		return err
	}
	return b.messages()
}

// context adds the entries of a context that was stated or deleted. Its tip comes after
// them.
func (b *builder) context(id structure.ContextID, c *judge.ContextChange, records int) error {
	if c.Gone() {
		if err := b.contextGone(c.Was); err != nil {
			return err
		}
	}
	switch stated := (*statedContext)(c.Stated); {
	case stated == nil:
	case !c.Made: // known before
		k, start := b.slab.key(tableContext, id[:]), b.slab.begin()
		b.slab.buf = stated.append(b.slab.buf)
		b.put(k, b.slab.end(start))
	case records == 1 && c.Was == nil: // so nothing else here looks for them
		b.later = stated
	default:
		b.slab.begin()
		b.slab.buf = stated.Make(b.slab.buf, func(e index.Entry) { b.put(e.Key, e.Value) })
	}
	return nil
}

// contextGone takes out a context with what hangs on it.
func (b *builder) contextGone(c *backend.Context) error {
	b.put(b.slab.key(tableContext, c.ID[:]), nil)
	b.put(b.slab.key(tableTip, c.ID[:]), nil)
	b.put(b.slab.key(tableMember, c.Thread[:], c.ID[:]), nil)
	if !c.Parent.IsZero() {
		b.put(b.slab.key(tableChild, c.Parent[:], c.ID[:]), nil)
	}
	gone, err := b.engine.state.entriesOf(c.ID)
	b.batch = append(b.batch, gone...)
	return err
}

// statedContext makes the entries of a context that is new, as it was stated.
type statedContext backend.Context

// append writes the value of a context as it was stated: since when it stands where its
// record lets it stand, and the record.
func (c *statedContext) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, c.Moved)
	dst = binary.AppendUvarint(dst, uint64(c.MovedAt))
	// It was part of a commit that could be written, or read.
	dst, _ = structure.AppendRecord(dst, &c.Context)
	return dst
}

// Make implements index.Maker.
func (c *statedContext) Make(memory []byte, put func(index.Entry)) []byte {
	entry := func(table byte, of []byte, value func([]byte) []byte) {
		start := len(memory)
		memory = append(memory, table)
		memory = append(memory, of...)
		memory = append(memory, c.ID[:]...)
		end := len(memory)
		if value != nil {
			memory = value(memory)
		}
		put(index.Entry{Key: memory[start:end:end], Value: memory[end:len(memory):len(memory)]})
	}
	entry(tableMember, c.Thread[:], nil)
	if !c.Parent.IsZero() {
		entry(tableChild, c.Parent[:], nil)
	}
	entry(tableContext, nil, c.append)
	return memory
}

// Count implements index.Maker.
func (c *statedContext) Count() int { return 3 }

func (b *builder) tip(id structure.ContextID, at judge.Tip) {
	k, start := b.slab.key(tableTip, id[:]), b.slab.begin()
	b.slab.buf = appendTip(b.slab.buf, at)
	b.put(k, b.slab.end(start))
}

// texts changes the entries by which a thread is found by how its source id and title begin.
func (b *builder) texts(was, is *structure.Thread) {
	for _, of := range [...]func(*structure.Thread) []byte{sourceTextKey, titleTextKey} {
		from, to := of(was), of(is)
		if bytes.Equal(from, to) {
			continue
		}
		if from != nil {
			b.put(from, nil)
		}
		if to != nil {
			b.put(to, present)
		}
	}
}

// messages adds the entries of the homes whose last message is a later one now. Of messages
// that are said in the same millisecond only the first adds one.
func (b *builder) messages() error {
	for home, at := range b.LastMessages.All() {
		is, known := b.engine.current.messages.get(home)
		if !known {
			var err error
			if is, known, err = lastMessage(&b.engine.state, home); err != nil {
				return err
			}
		}
		if known && is >= at {
			b.last = append(b.last, lastOf{home, is})
			continue
		}
		b.last = append(b.last, lastOf{home, at})
		start := b.slab.begin()
		b.slab.buf = appendMessageKey(b.slab.buf, home)
		k := b.slab.end(start)
		start = b.slab.begin()
		b.slab.buf = binary.AppendVarint(b.slab.buf, at)
		b.put(k, b.slab.end(start))
	}
	return nil
}

func (b *builder) names() {
	for n, change := range b.Branches.All() {
		was, is := change.Was, change.Now
		moved := was == nil || is == nil || was.Context != is.Context
		if was != nil && moved {
			b.put(namedKey(n.Thread, was.Context, n.Name), nil)
		}
		if is != nil && moved {
			b.put(namedKey(n.Thread, is.Context, n.Name), present)
		}
		if k := branchKey(n.Thread, n.Name); is != nil {
			b.putRecord(k, is)
		} else {
			b.put(k, nil)
		}
	}
	for n, change := range b.Checkpoints.All() {
		if k := checkpointKey(n.Thread, n.Name); change.Now != nil {
			b.putRecord(k, change.Now)
		} else {
			b.put(k, nil)
		}
	}
	for from, name := range b.BranchSources.All() {
		b.named(tableBranchFrom, from, name)
	}
	for from, name := range b.CheckpointSources.All() {
		b.named(tablePointFrom, from, name)
	}
}

// named adds the entry of what has a source id now.
func (b *builder) named(table byte, from judge.Source, name string) {
	k := sourceKey(table, from.ID, from.Thread[:]...)
	if name == "" {
		b.put(k, nil)
	} else {
		b.put(k, []byte(name))
	}
}

// requireGone refuses the id of something dead that a collection has not yet deleted from the index: the entries of the
// two could not be told apart.
func (b *builder) requireGone(kind structure.Kind, id string, table byte, of []byte) error {
	barrier := b.engine.barrier.Load()
	if barrier == nil || b.engine.state.replay {
		return nil
	}
	k := b.slab.key(table, of)
	if !barrier.dead(k, nil) {
		return nil
	}
	_, there, err := b.engine.index.Get(k)
	if err == nil && there {
		err = &backend.SubjectError{Subject: kind.String(), ID: id, Err: backend.ErrConflict, Detail: "a collection deletes what had the id"}
	}
	return err
}

func (b *builder) run(id structure.RunID, info structure.RunInfo) {
	k, start := b.slab.key(tableRun, id[:]), b.slab.begin()
	b.slab.buf = appendRun(b.slab.buf, info)
	b.put(k, b.slab.end(start))
	b.put(b.slab.key(tableFork, info.Parent.Run[:], be64(info.Parent.Seq), id[:]), present)
	if thread := info.Home.Thread; !thread.IsZero() {
		b.put(b.slab.key(tableHome, thread[:], id[:]), present)
	}
}

func (b *builder) notes() {
	for at := range b.SummariesGone.All() {
		b.put(b.slab.key(tableSummary, at.Context[:], be64(at.Commit), be64(at.Record)), nil)
	}
	for _, s := range b.Summaries {
		if s.Is != nil {
			b.putRecord(b.slab.key(tableSummary, s.Is.Context[:], be64(b.number), be64(uint64(s.Record))), s.Is)
		}
	}
	for _, r := range b.Reflog {
		if r.Is != nil {
			b.putRecord(b.slab.key(tableReflog, r.Is.Context[:], be64(b.number), be64(uint64(r.Record))), r.Is)
		}
	}
}

func (b *builder) erasures() error {
	for id, erased := range b.Erased.All() {
		if k := b.slab.key(tableErased, id[:]); erased {
			b.put(k, present)
		} else {
			b.put(k, nil)
		}
	}
	// The usages of a block in the commit that it was stored with were found there as
	// long as that was its place. Now they get entries.
	behind := b.engine.barrier.Load()
	if behind != nil && b.number <= behind.live.until && b.engine.below.Load().hidden == nil {
		behind = nil // it was not there yet, and the index still has what is dead
	}
	for _, id := range b.Revived {
		own, err := view{engine: b.engine}.ownUsages(&b.engine.state, id, behind)
		if err != nil {
			return err
		}
		for _, u := range own {
			b.usage(id, u.commit, u.place, u.UsageID)
		}
	}
	return nil
}
