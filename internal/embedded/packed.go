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

// Packs find their own content and spans. Where the journal begins with packs, the
// index has no entries for what they find: of tables h and y those of content that
// is kept whole, of table s those without a digest, and table n. Whoever reads the
// index looks into the packs for what it does not have.

// packLayer is the packs below the index, as of when an entry last left the index for
// them or a collection last changed what they have. It does not change; another
// takes its place.
type packLayer struct {
	last   uint32   // segment up to which packs answer; 0 for none
	hidden *barrier // what is dead and still in packs; nil for nothing
	number uint64   // no commit that packs answer for is later
	// places are where content was found lately: looking again would mean reading and
	// hashing it again.
	places *recent.Shared[contentStart, foundPlace]
}

// contentStart is a table and the start of a hash.
type contentStart [1 + keys.HashPrefix]byte

// place is a number of the hash's own.
func (s contentStart) place() uint64 { return binary.LittleEndian.Uint64(s[1:]) }

// foundPlace is where content stands, and the commit that brought it.
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

// mostPlace is behind every place of a run.
const mostPlace = 1<<64 - 1

// anyCommit is for finding what whichever commit brought.
const anyCommit = 1<<64 - 1

// catalog is the index as of one commit with the packs below it.
type catalog struct {
	*index.Snapshot
	engine *Engine
	files  *journal.View // nil for the journal as it is at each read
	packs  *packLayer
	view   read.View // which reads from the catalog
}

// catalog returns a catalog over a snapshot that was just taken. What left the
// index before was in packs before.
func (e *Engine) catalog(s *index.Snapshot, files *journal.View) *catalog {
	c := &catalog{Snapshot: s, engine: e, files: files, packs: e.packs.Load()}
	c.view = read.View{Index: c, Commits: c, Packs: c, Frames: &e.frames, Digests: e.cache}
	return c
}

// Get returns the value of a key, which must not be changed.
func (c *catalog) Get(key []byte) ([]byte, bool, error) {
	v, ok, err := c.Snapshot.Get(key)
	if ok || err != nil {
		return v, ok, err
	}
	return c.packs.get(c.engine, c.files, key, c.after())
}

// after is the commit after the last that the catalog knows: packs may hold later
// ones.
func (c *catalog) after() uint64 { return c.State().Number + 1 }

// get is Get of the latest state, for what came before a commit.
func (e *Engine) get(key []byte, before uint64) ([]byte, bool, error) {
	v, ok, err := e.index.Get(key)
	if ok || err != nil {
		return v, ok, err
	}
	return e.packs.Load().get(e, nil, key, before)
}

// in returns the files to look into, and what releases them.
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

// content finds a block or chunk by its key in the index. The record is returned
// where finding it meant reading it.
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
	if before > l.number { // what was found is the last of all
		l.places.Set(start, foundPlace{p, f.Commit})
	}
	return p, f.Record, true, nil
}

// Object reads the block or chunk under a key. The caller compares what it gets
// with what it wanted.
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

// spanAt is where the frame is that holds the span at a place of a run.
type spanAt struct {
	seq   uint64
	frame journal.Position
}

// spans yields the spans of a run that packs have from before a commit, from first
// to last, until one is missing.
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

// spansAt returns the spans of a run that a pack has together with one of them, from
// before a commit and none that is dead; none where no pack has it.
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

// clip returns up to which place a run lives, or the place given if that is less.
func (l *packLayer) clip(run structure.RunID, last uint64) uint64 {
	if l.hidden == nil {
		return last
	}
	return l.hidden.clip(run, last)
}

// end returns the last place of a run in packs that came before a commit.
func (l *packLayer) end(e *Engine, files *journal.View, run structure.RunID, before uint64) (uint64, error) {
	if l.last == 0 {
		return 0, nil
	}
	files, release := e.in(files)
	defer release()
	for s, err := range files.Run(l.last, run, mostPlace, before) {
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

// inPacks reports whether the index can do without an entry, given that packs up to
// a segment find what they hold.
func inPacks(key, value []byte, last uint32) bool {
	switch key[0] {
	case keys.TableBlock, keys.TableChunk:
		p, err := keys.ReadPlace(value)
		return err == nil && p.Frame.Segment <= last && p.Size <= content.InlineLimit
	case keys.TableSpan:
		p, err := keys.ReadSpanPlace(value)
		return err == nil && p.Frame.Segment <= last && keys.ReadUint64(key[17:])%keys.DigestEvery != 0
	case keys.TableCommit:
		v := keys.Varints{Rest: value}
		p := keys.ReadPosition(&v)
		return v.Err() == nil && p.Segment <= last
	}
	return false
}

// packedTables are the tables of which entries are left to packs.
var packedTables = []byte{keys.TableBlock, keys.TableCommit, keys.TableSpan, keys.TableChunk}

// packedEntry says up to which segment packs find what the index does not have.
func packedEntry(last uint32) index.Entry {
	return index.Entry{Key: keys.Of(keys.TablePacked), Value: binary.AppendUvarint(nil, uint64(last))}
}

var errPacks = errors.New("the index counts on packs that are not there")

// openPacks finds out which packs answer below an index that was just opened. Of
// one that is to be made anew those do that are sound.
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
	value, ok, err := e.index.Get(keys.Of(keys.TablePacked))
	if err != nil || !ok {
		return err
	}
	values := keys.Varints{Rest: value}
	last := uint32(values.Next())
	if values.Bad || last > v.Packed() && e.damage == nil {
		return errPacks
	}
	e.packs.Store(newPackLayer(last, e.index.State().Number, e.packs.Load().hidden))
	return nil
}

// beginWith makes an empty index leave to packs what they find.
func (e *Engine) beginWith(last uint32) {
	e.packs.Store(newPackLayer(last, 0, e.packs.Load().hidden))
	if last > 0 {
		state := e.index.State()
		state.Store = e.journal.StoreID()
		e.index.Apply(state, []index.Entry{packedEntry(last)})
	}
}

// leaveToPacks takes out of the index what packs find. First the index says so;
// what is cut short after that leaves entries that say the same as the packs. The
// lock on packing is held.
func (e *Engine) leaveToPacks(ctx context.Context) error {
	is := e.packs.Load().last
	last, err := e.findable(ctx, is)
	if err != nil || last == is {
		return err
	}
	e.write.Lock()
	e.index.Apply(e.index.State(), []index.Entry{packedEntry(last)})
	e.packs.Store(newPackLayer(last, e.index.State().Number, e.packs.Load().hidden))
	e.write.Unlock()
	return e.index.Drop(ctx, packedTables, func(key, value []byte) bool { return inPacks(key, value, last) })
}

// findable returns up to which segment packs find what they hold, given up to which
// it is known that they do. A pack that does not is written anew, unless the store
// is so small that it need not.
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
		for _, s := range e.journal.Segments() {
			if s.First == last+1 {
				if _, err := e.journal.Rewrite(ctx, s.First, s.Last, journal.RewriteOptions{}); err != nil {
					return last, err
				}
			}
		}
		known = last
	}
}

// unlisted reports whether a pack that begins with a segment need not find what it
// holds: in a small archive the index is made anew in no time.
func (e *Engine) unlisted(first uint32, dense bool) bool {
	return dense && first > e.packs.Load().last && e.isSmall()
}

// putUp makes an engine whose index accounts for a barrier have it; nil for none.
func (e *Engine) putUp(b *barrier) {
	e.barrier.Store(b)
	e.hide(b)
}

// hide makes what is dead be missing from packs that still have it; nil ends that.
func (e *Engine) hide(dead *barrier) {
	e.packs.Store(newPackLayer(e.packs.Load().last, e.packs.Load().number, dead))
}

// clip returns up to which place a run lives, or the place given if that is less.
func (b *barrier) clip(run structure.RunID, last uint64) uint64 {
	if r, ok := b.live.runs[run]; ok {
		if r.cut() {
			return min(r.live, last)
		}
		return last
	}
	if b.run(run) {
		return 0
	}
	return last
}

// matchesPacks reports whether an entry of the index says what the packs say.
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
	is, ok, err := l.get(e, nil, k, anyCommit)
	return ok && bytes.Equal(is, value), err
}
