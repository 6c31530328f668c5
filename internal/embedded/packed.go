package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/embedded/recent"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/structure"
)

// Packs can look up their own content and spans. Where the journal begins with packs, the index has no entries for
// these: in tables h and y for content stored whole, in table s for spans without a digest, and in table n for
// commits. A read that finds no entry in the index searches the packs.

// packLayer is the packs below the index. It is immutable. It is replaced when packs replace entries of the index, or
// when a collection changes what packs show.
type packLayer struct {
	last   uint32   // last segment covered by packs; 0 for none
	hidden *barrier // hides dead records that are still in packs; nil for none
	number uint64   // no commit in these packs is later
	// places caches where content was found. Without it, another lookup would read and hash the content again.
	places *recent.Shared[contentStart, foundPlace]
}

// contentStart is a table and the start of a hash.
type contentStart [1 + keys.HashPrefix]byte

// place returns a number that identifies the hash.
func (s contentStart) place() uint64 { return binary.LittleEndian.Uint64(s[1:]) }

// foundPlace is the place of content, and the commit that stored it.
type foundPlace struct {
	keys.Place
	commit uint64
}

func newPackLayer(last uint32, number uint64, hidden *barrier) *packLayer {
	return &packLayer{last: last, number: number, hidden: hidden, places: recent.NewShared[contentStart, foundPlace](contentStart.place)}
}

// Has implements entries.Below.
func (l *packLayer) Has(p journal.Position) bool { return p.Segment <= l.last }

// Found implements entries.Below.
func (l *packLayer) Found(key []byte, p keys.Place, commit uint64) {
	l.places.Set(contentStart(key), foundPlace{p, commit})
}

// maxPlace is larger than any place of a run.
const maxPlace = 1<<64 - 1

// anyCommit matches entries of any commit.
const anyCommit = 1<<64 - 1

// catalog is the index as of one commit with the packs below it.
type catalog struct {
	*index.Snapshot
	engine *Engine
	files  *journal.View // nil for the current journal at each read
	packs  *packLayer
	view   read.View // reads from the catalog
}

// catalog returns a catalog over a snapshot that was just taken: entries that the
// snapshot lacks were already in packs.
func (e *Engine) catalog(s *index.Snapshot, files *journal.View) *catalog {
	c := &catalog{Snapshot: s, engine: e, files: files, packs: e.packs.Load()}
	c.view = read.View{Index: c, Commits: c, Packs: c, Frames: &e.frames, Digests: e.cache}
	return c
}

// Get returns the value of a key. The caller must not change it.
func (c *catalog) Get(key []byte) ([]byte, bool, error) {
	v, ok, err := c.Snapshot.Get(key)
	if ok || err != nil {
		return v, ok, err
	}
	return c.packs.get(c.engine, c.files, key, c.after())
}

// after returns the number after the catalog's last commit, because packs may have later commits.
func (c *catalog) after() uint64 { return c.State().Number + 1 }

// get is Get of the latest state, limited to commits before the given one.
func (e *Engine) get(key []byte, before uint64) ([]byte, bool, error) {
	v, ok, err := e.index.Get(key)
	if ok || err != nil {
		return v, ok, err
	}
	return e.packs.Load().get(e, nil, key, before)
}

// in returns files, or the current files if it is nil, and a function that releases them.
func (e *Engine) in(files *journal.View) (*journal.View, func()) {
	if files != nil {
		return files, func() {}
	}
	now := e.journal.View()
	return now, now.Release
}

// get returns the value that the index would have under a key.
func (l *packLayer) get(e *Engine, files *journal.View, key []byte, before uint64) (value []byte, ok bool, err error) {
	if l.last == 0 {
		return nil, false, nil
	}
	switch key[0] {
	case keys.TableBlock, keys.TableChunk:
		p, _, ok, err := l.content(e, files, key, before)
		if err != nil || !ok {
			return nil, false, err
		}
		return p.Append(nil), true, nil
	case keys.TableSpan:
		ref := structure.SpanRef{Run: structure.RunID(key[1:17]), Seq: keys.ReadUint64(key[17:])}
		for s, err := range l.spans(e, files, ref.Run, ref.Seq, ref.Seq, before) {
			return keys.AppendPosition(nil, s.frame), err == nil, err
		}
	}
	return nil, false, nil
}

// content finds a block or chunk by its index key. It also returns the record if the record was read to find it.
func (l *packLayer) content(e *Engine, files *journal.View, key []byte, before uint64) (p keys.Place, r structure.Record, ok bool, err error) {
	start := contentStart(key)
	if l.last == 0 || l.hidden != nil && l.hidden.dead(key, nil) || e.filter.lacksContent(key[1:]) {
		return p, nil, false, nil
	}
	if at, ok := l.places.Get(start); ok && at.commit < before {
		return at.Place, nil, true, nil
	}
	files, release := e.in(files)
	defer release()
	kind := structure.KindBlock
	if key[0] == keys.TableChunk {
		kind = structure.KindChunk
	}
	f, ok, err := files.Find(l.last, kind, key[1:], before)
	if err != nil || !ok {
		return p, nil, false, err
	}
	p = keys.Place{Frame: f.Frame, Record: f.Offset}
	switch r := f.Record.(type) {
	case *structure.Block:
		p.Size = r.Size
	case *structure.Chunk:
		p.Size = int64(len(r.Bytes))
	}
	if before > l.number { // no later commit has it
		l.places.Set(start, foundPlace{p, f.Commit})
	}
	return p, f.Record, true, nil
}

// Object reads the block or chunk under a key. The key is a prefix of a hash, so the
// caller must compare the id.
func (c *catalog) Object(reader read.Reader, key []byte) (structure.Record, keys.Place, bool, error) {
	value, ok, err := c.Snapshot.Get(key)
	if err != nil {
		return nil, keys.Place{}, false, err
	}
	if ok {
		r, p, err := read.ReadObject(reader, value)
		return r, p, true, err
	}
	p, r, ok, err := c.packs.content(c.engine, c.files, key, c.after())
	if err == nil && ok && r == nil {
		r, err = reader.Object(p.Frame, p.Record, p.Size)
	}
	return r, p, ok, err
}

// spanAt is the position of the frame with the span at a place of a run.
type spanAt struct {
	seq   uint64
	frame journal.Position
}

// spans yields the spans of a run in packs, from first to last and from before a
// commit. It stops at the first missing one.
func (l *packLayer) spans(e *Engine, files *journal.View, run structure.RunID, first, last, before uint64) iter.Seq2[spanAt, error] {
	return func(yield func(spanAt, error) bool) {
		if last = l.clip(run, last); l.last == 0 || first > last {
			return
		}
		files, release := e.in(files)
		defer release()
		var found []journal.Spans // the latest first
		for s, err := range files.Run(l.last, run, last, before) {
			if err != nil {
				yield(spanAt{}, err)
				return
			}
			if s.Last < first {
				break
			}
			if found = append(found, s); s.First <= first {
				break
			}
		}
		at, commit := spanAt{seq: first}, uint64(0)
		for n := len(found) - 1; n >= 0; n-- {
			s := found[n]
			if s.First > at.seq {
				return
			}
			for ; at.seq <= min(s.Last, last); at.seq++ {
				if now := s.Commit(at.seq); now != commit {
					var err error
					if at.frame, err = s.Position(at.seq); err != nil {
						yield(spanAt{}, err)
						return
					}
					commit = now
				}
				if !yield(at, nil) {
					return
				}
			}
		}
	}
}

// spansAt returns the live spans from before a commit that a pack stores together
// with the given span, or none if no pack has it.
func (l *packLayer) spansAt(e *Engine, files *journal.View, ref structure.SpanRef, before uint64) (journal.Spans, error) {
	if l.last == 0 || l.clip(ref.Run, ref.Seq) < ref.Seq {
		return journal.Spans{}, nil
	}
	files, release := e.in(files)
	defer release()
	for s, err := range files.Run(l.last, ref.Run, ref.Seq, before) {
		if err != nil {
			return journal.Spans{}, err
		}
		if s.Last < ref.Seq {
			break
		}
		if s.First <= ref.Seq {
			return s.UpTo(l.clip(ref.Run, s.Last)), nil
		}
	}
	return journal.Spans{}, nil
}

// clip returns last or, if smaller, the last live place of a run.
func (l *packLayer) clip(run structure.RunID, last uint64) uint64 {
	if l.hidden == nil {
		return last
	}
	return l.hidden.clip(run, last)
}

// end returns the last place of a run in packs from before a commit.
func (l *packLayer) end(e *Engine, files *journal.View, run structure.RunID, before uint64) (uint64, error) {
	if l.last == 0 {
		return 0, nil
	}
	files, release := e.in(files)
	defer release()
	for s, err := range files.Run(l.last, run, maxPlace, before) {
		if err != nil {
			return 0, err
		}
		return l.clip(run, s.Last), nil
	}
	return 0, nil
}

// LastSpan returns the last span of a run, or the zero ref of an empty one.
func (c *catalog) LastSpan(run structure.RunID) (structure.SpanRef, error) {
	prefix := keys.Of(keys.TableSpan, run[:])
	e, ok, err := c.Last(prefix, keys.PrefixEnd(prefix))
	if err != nil {
		return structure.SpanRef{}, err
	}
	last := uint64(0)
	if ok {
		p, err := keys.ReadSpanPlace(e.Value)
		if err != nil {
			return structure.SpanRef{}, err
		}
		last = keys.ReadUint64(e.Key[len(prefix):])
		if p.Frame.Segment > c.packs.last {
			return structure.SpanRef{Run: run, Seq: last}, nil
		}
	}
	packed, err := c.packs.end(c.engine, c.files, run, c.after())
	if last = max(last, packed); err != nil || last == 0 {
		return structure.SpanRef{}, err
	}
	return structure.SpanRef{Run: run, Seq: last}, nil
}

// inPacks reports whether the index does not need an entry because the packs, which cover
// all segments up to last, can answer the lookup.
func inPacks(key, value []byte, last uint32) bool {
	switch key[0] {
	case keys.TableBlock, keys.TableChunk:
		p, err := keys.ReadPlace(value)
		return err == nil && p.Frame.Segment <= last && p.Size <= content.InlineLimit
	case keys.TableSpan:
		p, err := keys.ReadSpanPlace(value)
		return err == nil && p.Frame.Segment <= last && keys.ReadUint64(key[17:])%keys.DigestEvery != 0
	case keys.TableCommit:
		v := keys.ReadVarints(value)
		p := keys.ReadPosition(&v)
		return v.Err() == nil && p.Segment <= last
	}
	return false
}

// packedTables are the tables whose entries packs replace.
var packedTables = []byte{keys.TableBlock, keys.TableCommit, keys.TableSpan, keys.TableChunk}

// packedEntry records the last segment that packs answer for.
func packedEntry(last uint32) index.Entry {
	return index.Entry{Key: keys.Of(keys.TablePackedUpTo), Value: binary.AppendUvarint(nil, uint64(last))}
}

var errPacks = errors.New("the index relies on packs that do not exist or have no lookup tables")

// openPacks determines which packs answer below an index that was just opened. Below
// an empty index these are all sound packs.
func (e *Engine) openPacks() error {
	v := e.journal.View()
	defer v.Release()
	if e.index.State().Number == 0 {
		last, err := v.Findable(0)
		if err != nil && !errors.Is(err, journal.ErrUnlisted) {
			e.opt.Logger.Warn("index is built without the lists of packs", "err", err)
		}
		e.beginWith(last)
		return nil
	}
	value, ok, err := e.index.Get(keys.Of(keys.TablePackedUpTo))
	if err != nil || !ok {
		return err
	}
	values := keys.ReadVarints(value)
	last := uint32(values.Next())
	if values.Bad || last > v.Listed() && e.damage == nil {
		return errPacks
	}
	e.packs.Store(newPackLayer(last, e.index.State().Number, e.packs.Load().hidden))
	return nil
}

// beginWith initializes an empty index that relies on packs up to a segment.
func (e *Engine) beginWith(last uint32) {
	e.packs.Store(newPackLayer(last, 0, e.packs.Load().hidden))
	if last > 0 {
		state := e.index.State()
		state.Store = e.journal.StoreID()
		e.index.Apply(state, []index.Entry{packedEntry(last)})
	}
}

// dropPacked deletes index entries that packs replace. The index first records the
// new limit; if the deletion is interrupted, the remaining entries agree with the
// packs. The caller holds packing.
func (e *Engine) dropPacked(ctx context.Context) error {
	upTo := e.packs.Load().last
	last, err := e.findable(ctx, upTo)
	if err != nil || last == upTo {
		return err
	}
	e.write.Lock()
	e.index.Apply(e.index.State(), []index.Entry{packedEntry(last)})
	e.packs.Store(newPackLayer(last, e.index.State().Number, e.packs.Load().hidden))
	e.write.Unlock()
	return e.index.Drop(ctx, packedTables, func(key, value []byte) bool { return inPacks(key, value, last) })
}

// compactIndex compacts the index, without entries that packs replace and values that follow from messages.
func (e *Engine) compactIndex(ctx context.Context) error {
	last := e.packs.Load().last
	return e.index.Compact(ctx, func(key, value []byte) []byte {
		if inPacks(key, value, last) {
			return nil
		}
		return keys.Sealed(key, value)
	})
}

// findable returns the last segment that packs can answer for, given a known lower
// bound. A pack without lookup tables is rewritten, unless the store is small.
func (e *Engine) findable(ctx context.Context, known uint32) (uint32, error) {
	for {
		v := e.journal.View()
		last, err := v.Findable(known)
		v.Release()
		switch {
		case errors.Is(err, journal.ErrLookup):
			e.opt.Logger.Warn("damaged lists of a pack: the pack is rewritten", "err", err)
		case !errors.Is(err, journal.ErrUnlisted):
			return last, err
		case e.isSmall():
			return last, nil
		}
		found := false
		for _, s := range e.journal.Segments() {
			if s.First <= last+1 && last+1 <= s.Last {
				found = true
				if _, err := e.journal.Rewrite(ctx, s.First, s.Last, journal.RewriteOptions{}); err != nil {
					return last, err
				}
			}
		}
		if !found {
			return last, err
		}
		known = last
	}
}

// unlisted reports whether a new pack needs no lookup tables: the index of a small
// archive is rebuilt quickly.
func (e *Engine) unlisted(first uint32, dense bool) bool {
	return dense && first > e.packs.Load().last && e.isSmall()
}

// setBarrier sets the barrier, nil for none. The index must account for the barrier's collection.
func (e *Engine) setBarrier(b *barrier) {
	e.barrier.Store(b)
	e.hide(b)
}

// hide hides dead records that packs still contain; nil shows everything.
func (e *Engine) hide(dead *barrier) {
	e.packs.Store(newPackLayer(e.packs.Load().last, e.packs.Load().number, dead))
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

// matchesPacks reports whether an index entry agrees with the packs.
func (e *Engine) matchesPacks(l *packLayer, k, value []byte) (bool, error) {
	if !inPacks(k, value, l.last) {
		return false, nil
	}
	if k[0] == keys.TableCommit {
		v := e.journal.View()
		defer v.Release()
		p, ok, err := v.Commit(l.last, keys.ReadUint64(k[1:]))
		return ok && bytes.Equal(keys.AppendPosition(nil, p), value), err
	}
	packed, ok, err := l.get(e, nil, k, anyCommit)
	return ok && bytes.Equal(packed, value), err
}
