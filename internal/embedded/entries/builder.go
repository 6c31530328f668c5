// Package entries is the commit path of an engine: the state that the judge reads from the
// entries of package keys, and the entries that result from a judged commit. It is independent
// of where entries are stored.
package entries

import (
	"bytes"
	"encoding/binary"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Builder turns the effects of a commit into index entries. New and replayed commits give the
// same entries.
//
// It works in two steps, because the position of a commit is known only after it is written:
// Entries may fail and changes nothing outside; Locate cannot fail.
type Builder struct {
	*judge.Effects
	state  *State
	number uint64

	slab slab
	// Batch has the entries of the commit.
	Batch []index.Entry
	later *statedContext // produces the remaining entries; nil if there are none
	last  []lastOf       // times of last messages that the commit changed or looked up

	// Digests stores the digest of each span. Otherwise only some spans have theirs stored, and the others are
	// computed, which takes many lookups.
	Digests bool

	below Below // the layer that has the commit; nil if the index needs all its entries
}

// Below is a layer of packs that replace index entries.
type Below interface {
	// Has reports whether packs have the commit at a position.
	Has(journal.Position) bool
	// Found records the place of a block or chunk, by its key.
	Found(key []byte, p keys.Location, commit uint64)
}

// Begin prepares the builder for a commit with the given effects in a state.
func (b *Builder) Begin(s *State, effects *judge.Effects) {
	b.state, b.number, b.Effects, b.later = s, s.number, effects, nil
	b.slab.buf = b.slab.buf[:0] // the index copies its input
	if cap(b.Batch) > 1<<12 {
		b.Batch = nil // do not retain the memory of a huge commit
	}
	if len(b.Batch) > 64 {
		clear(b.Batch) // do not retain its entries
	}
	b.Batch, b.last = b.Batch[:0], b.last[:0]
}

// lastOf is the time of the last message of a home, in Unix milliseconds.
type lastOf struct {
	home structure.Home
	at   int64
}

// Later returns the producer of the remaining entries, or nil if there are none.
func (b *Builder) Later() index.Maker {
	if b.later == nil {
		return nil
	}
	return b.later
}

// Put adds an entry; a nil value deletes the key.
func (b *Builder) Put(key, value []byte) {
	b.Batch = append(b.Batch, index.Entry{Key: key, Value: value})
}

// putRecord adds an entry with a record. Encoding cannot fail: the record is in an encoded or
// decoded commit.
func (b *Builder) putRecord(key []byte, r structure.Record) {
	start := b.slab.begin()
	b.slab.buf, _ = structure.AppendRecord(b.slab.buf, r)
	b.Put(key, b.slab.end(start))
}

// Entries adds the entries that do not depend on the commit's position.
func (b *Builder) Entries(records int) error {
	for id, t := range b.Threads.All() {
		k := b.slab.key(keys.TableThread, id[:])
		switch {
		case t.Now == nil:
			b.Put(k, nil)
			b.Put(keys.ThreadEnd(id), nil)
			b.texts(t.Was, nil)
			continue
		case t.Was == nil:
			b.Put(keys.ThreadEnd(id), keys.Present)
		}
		b.texts(t.Was, t.Now)
		b.putRecord(k, t.Now)
	}
	b.remnantsGone()
	for id, c := range b.Contexts.All() {
		if err := b.context(id, &c, records); err != nil {
			return err
		}
	}
	b.remnants()
	for id, at := range b.Tips.All() {
		b.tip(id, at)
	}
	b.names()
	for id, info := range b.Runs.All() {
		if err := b.requireGone(structure.KindRun, id.String(), keys.TableRun, id[:]); err != nil {
			return err
		}
		b.run(id, info)
	}
	for _, run := range b.Cuts {
		b.Put(b.slab.key(keys.TableCutRun, run[:]), keys.Present)
	}
	for id, s := range b.Sets.All() {
		if err := b.requireGone(structure.KindSpanSet, id.String(), keys.TableSpanSet, id[:]); err != nil {
			return err
		}
		b.putRecord(b.slab.key(keys.TableSpanSet, id[:]), s)
	}
	for l, span := range b.Lookups.All() {
		b.Put(keys.AppendLookup(nil, nil, l, span))
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

// context adds the entries of a context that was stated or deleted. Its tip is added after
// them.
func (b *Builder) context(id structure.ContextID, c *judge.ContextChange, records int) error {
	if c.Gone() {
		if err := b.contextGone(c.Was); err != nil {
			return err
		}
	}
	switch stated := (*statedContext)(c.Stated); {
	case stated == nil:
	case !c.Created: // the context existed before
		k, start := b.slab.key(keys.TableContext, id[:]), b.slab.begin()
		b.slab.buf = stated.append(b.slab.buf)
		b.Put(k, b.slab.end(start))
	case records == 1 && c.Was == nil && b.Remnants.Len() == 0: // then nothing else in the commit reads them
		b.later = stated
	default:
		b.slab.begin()
		b.slab.buf = stated.Make(b.slab.buf, func(e index.Entry) { b.Put(e.Key, e.Value) })
	}
	return nil
}

// contextGone deletes a context and the entries that belong to it.
func (b *Builder) contextGone(c *backend.Context) error {
	b.Put(b.slab.key(keys.TableContext, c.ID[:]), nil)
	b.Put(b.slab.key(keys.TableTip, c.ID[:]), nil)
	b.Put(b.slab.key(keys.TableContextOfThread, c.Thread[:], c.ID[:]), nil)
	if !c.Parent.IsZero() {
		b.Put(b.slab.key(keys.TableChildOfContext, c.Parent[:], c.ID[:]), nil)
	}
	keysOfContext, err := b.state.entriesOf(c.ID)
	b.Batch = append(b.Batch, keysOfContext...)
	return err
}

// remnantsGone deletes the entries of remnants from before the commit. Some of them are replaced by contexts.
func (b *Builder) remnantsGone() {
	for id, r := range b.Remnants.All() {
		if r.Was == nil {
			continue
		}
		b.Put(b.slab.key(keys.TableRemnant, id[:]), nil)
		if !r.Was.Parent.IsZero() {
			b.Put(b.slab.key(keys.TableChildOfContext, r.Was.Parent[:], id[:]), nil)
		}
	}
}

// remnants adds the entries of remnants.
func (b *Builder) remnants() {
	for id, r := range b.Remnants.All() {
		if r.Now == nil {
			continue
		}
		b.putRecord(b.slab.key(keys.TableRemnant, id[:]), r.Now)
		if !r.Now.Parent.IsZero() {
			b.Put(b.slab.key(keys.TableChildOfContext, r.Now.Parent[:], id[:]), keys.RemnantChild)
		}
	}
}

// statedContext produces the entries of a new context.
type statedContext backend.Context

// append appends the value of a stated context: the commit since which it has the tip in its
// record, the time, and the record.
func (c *statedContext) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, c.Moved)
	dst = binary.AppendUvarint(dst, uint64(c.MovedAt))
	// The record is in an encoded or decoded commit.
	dst, _ = structure.AppendRecord(dst, &c.Context)
	return dst
}

// Make implements index.Maker.
func (c *statedContext) Make(memory []byte, put func(index.Entry)) []byte {
	entry := func(table byte, owner []byte, value func([]byte) []byte) {
		start := len(memory)
		memory = append(memory, table)
		memory = append(memory, owner...)
		memory = append(memory, c.ID[:]...)
		end := len(memory)
		if value != nil {
			memory = value(memory)
		}
		put(index.Entry{Key: memory[start:end:end], Value: memory[end:len(memory):len(memory)]})
	}
	entry(keys.TableContextOfThread, c.Thread[:], nil)
	if !c.Parent.IsZero() {
		entry(keys.TableChildOfContext, c.Parent[:], nil)
	}
	entry(keys.TableContext, nil, c.append)
	return memory
}

// Count implements index.Maker.
func (c *statedContext) Count() int { return 3 }

func (b *Builder) tip(id structure.ContextID, at judge.Tip) {
	k, start := b.slab.key(keys.TableTip, id[:]), b.slab.begin()
	b.slab.buf = keys.AppendTip(b.slab.buf, at)
	b.Put(k, b.slab.end(start))
}

// texts updates the entries that find a thread by a prefix of its source id or title.
func (b *Builder) texts(was, now *structure.Thread) {
	for _, textOf := range [...]func(*structure.Thread) []byte{keys.SourceText, keys.TitleText} {
		from, to := textOf(was), textOf(now)
		if bytes.Equal(from, to) {
			continue
		}
		if from != nil {
			b.Put(from, nil)
		}
		if to != nil {
			b.Put(to, keys.Present)
		}
	}
}

// messages adds entries for homes whose last message is later than before. Several messages in the same millisecond
// need only one entry.
func (b *Builder) messages() error {
	for home, at := range b.LastMessages.All() {
		last, known := b.state.Cache.messages.Get(home)
		if !known {
			var err error
			if last, known, err = read.LastMessage(b.state, home); err != nil {
				return err
			}
		}
		if known && last >= at {
			b.last = append(b.last, lastOf{home, last})
			continue
		}
		b.last = append(b.last, lastOf{home, at})
		start := b.slab.begin()
		b.slab.buf = keys.AppendMessage(b.slab.buf, home)
		k := b.slab.end(start)
		start = b.slab.begin()
		b.slab.buf = binary.AppendVarint(b.slab.buf, at)
		b.Put(k, b.slab.end(start))
	}
	return nil
}

func (b *Builder) names() {
	for n, change := range b.Branches.All() {
		was, now := change.Was, change.Now
		moved := was == nil || now == nil || was.Context != now.Context
		if was != nil && moved {
			b.Put(keys.Named(n.Thread, was.Context, n.Name), nil)
		}
		if now != nil && moved {
			b.Put(keys.Named(n.Thread, now.Context, n.Name), keys.Present)
		}
		if k := keys.Branch(n.Thread, n.Name); now != nil {
			b.putRecord(k, now)
		} else {
			b.Put(k, nil)
		}
	}
	for n, change := range b.Checkpoints.All() {
		if k := keys.Checkpoint(n.Thread, n.Name); change.Now != nil {
			b.putRecord(k, change.Now)
		} else {
			b.Put(k, nil)
		}
	}
	for from, name := range b.BranchSources.All() {
		b.named(keys.TableBranchBySource, from, name)
	}
	for from, name := range b.CheckpointSources.All() {
		b.named(keys.TableCheckpointBySource, from, name)
	}
}

// named sets the entry of the branch or checkpoint with a source id.
func (b *Builder) named(table byte, from judge.SourceID, name string) {
	k := keys.Source(table, from.ID, from.Thread[:]...)
	if name == "" {
		b.Put(k, nil)
	} else {
		b.Put(k, []byte(name))
	}
}

// requireGone refuses an id whose former entries a collection has not deleted yet. They would be mixed with the new
// ones.
func (b *Builder) requireGone(kind structure.Kind, id string, table byte, owner []byte) error {
	if b.state.replay || !b.state.Latest.Collecting() {
		return nil
	}
	there, err := b.state.Latest.Deleting(b.slab.key(table, owner))
	if err == nil && there {
		err = &backend.SubjectError{Subject: kind.String(), ID: id, Err: backend.ErrConflict, Detail: "a collection is deleting the former owner of the id"}
	}
	return err
}

func (b *Builder) run(id structure.RunID, info structure.RunInfo) {
	k, start := b.slab.key(keys.TableRun, id[:]), b.slab.begin()
	b.slab.buf = keys.AppendRun(b.slab.buf, info)
	b.Put(k, b.slab.end(start))
	b.Put(b.slab.key(keys.TableForkOfRun, info.Parent.Run[:], keys.Uint64(info.Parent.Seq), id[:]), keys.Present)
	if thread := info.Home.Thread; !thread.IsZero() {
		b.Put(b.slab.key(keys.TableRunOfThread, thread[:], id[:]), keys.Present)
	}
}

func (b *Builder) notes() {
	for at := range b.SummariesGone.All() {
		b.Put(b.slab.key(keys.TableSummary, at.Context[:], keys.Uint64(at.Commit), keys.Uint64(at.Record)), nil)
	}
	for _, s := range b.Summaries {
		if s.Is != nil {
			b.putRecord(b.slab.key(keys.TableSummary, s.Is.Context[:], keys.Uint64(b.number), keys.Uint64(uint64(s.Record))), s.Is)
		}
	}
	for _, r := range b.Reflog {
		if r.Is != nil {
			b.putRecord(b.slab.key(keys.TableReflog, r.Is.Context[:], keys.Uint64(b.number), keys.Uint64(uint64(r.Record))), r.Is)
		}
	}
}

func (b *Builder) erasures() error {
	for id, erased := range b.Erased.All() {
		if k := b.slab.key(keys.TableErased, id[:]); erased {
			b.Put(k, keys.Present)
		} else {
			b.Put(k, nil)
		}
	}
	// The usages of a block in the commit that first stored it were found through the block's place, which has
	// changed. Now they need entries of their own.
	for _, id := range b.Revived {
		own, err := b.state.Latest.OwnUsages(b.state, id, b.number)
		if err != nil {
			return err
		}
		for _, u := range own {
			b.usage(id, u.Commit, u.Place, u.UsageID)
		}
	}
	return nil
}

// slab allocates keys and values from large buffers.
type slab struct{ buf []byte }

const (
	slabSize = 64 << 10
	slabRoom = 512 // fits most keys and values
)

// begin starts a key or value; its parts are appended to buf, and end returns it.
func (s *slab) begin() int {
	if cap(s.buf)-len(s.buf) < slabRoom {
		s.buf = make([]byte, 0, slabSize)
	}
	return len(s.buf)
}

func (s *slab) end(start int) []byte { return s.buf[start:len(s.buf):len(s.buf)] }

func (s *slab) key(table byte, parts ...[]byte) []byte {
	start := s.begin()
	s.buf = append(s.buf, table)
	for _, p := range parts {
		s.buf = append(s.buf, p...)
	}
	return s.end(start)
}

// values adds the entries of values that were set, and deletes those of deleted threads.
func (b *Builder) values() error {
	for _, id := range b.ThreadsGone {
		gone, err := b.state.valuesOf(structure.Owner{Scope: structure.ThreadScope, Thread: id})
		if err != nil {
			return err
		}
		b.Batch = append(b.Batch, gone...)
	}
	for key, v := range b.Values.All() {
		b.putRecord(keys.Value(key, b.number), v)
	}
	return nil
}

// Apply updates the cache with a commit. It calls publish, which makes the commit visible, with mu held, so that a
// reader that sees the commit also sees its contexts. If a context is the only record, its index entries are produced
// later. For the writer.
func (c *Cache) Apply(b *Builder, publish func()) {
	f, shared := b.Effects, (*backend.Context)(b.later)
	for id, info := range f.Runs.All() {
		c.runs.Set(id, info)
	}
	c.mu.Lock()
	publish()
	for run, end := range f.Ends.All() {
		c.ends.Set(run, end)
	}
	for _, run := range f.Cuts {
		c.ends.Forget(run)
	}
	for id, change := range f.Contexts.All() {
		if change.Stated == nil {
			c.contexts.Forget(id)
		} else {
			c.contexts.Set(id, liveContext{change.Stated, change.Stated == shared})
		}
	}
	for id, at := range f.Tips.All() {
		c.move(id, at)
	}
	c.mu.Unlock()
	for _, m := range b.last {
		c.messages.Set(m.home, m.at)
	}
}

// usage adds the entry of a usage, under the commit and the number of the usage in
// it.
func (b *Builder) usage(id content.ID, commit uint64, place uint32, u structure.UsageID) {
	k := b.slab.key(keys.TableUsageOfContent, id[:keys.HashPrefix], keys.Uint64(commit), binary.BigEndian.AppendUint32(nil, place))
	start := b.slab.begin()
	b.slab.buf = binary.AppendUvarint(keys.AppendRef(b.slab.buf, u.Span), uint64(u.Index))
	b.Put(k, b.slab.end(start))
}
