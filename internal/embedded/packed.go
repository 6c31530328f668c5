package embedded

import (
	"bytes"
	"encoding/binary"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/recent"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/structure"
)

// Packs can look up their own content and spans. Where the journal begins with packs, the index has no entries for
// these: in tables h and y for content stored whole, in table s for spans without a digest, and in table n for
// commits. A read that finds no entry in the index searches the packs.

// packLayer is the packs below the index. It is immutable. It is replaced when packs replace entries of the index, or
// when a collection changes what packs show.
type packLayer struct {
	files  func() *journal.FileSet // returns those to read, which the caller releases
	absent *absent

	last   uint32           // last segment covered by packs; 0 for none
	hidden *collect.Barrier // hides dead records that are still in packs; nil for none
	number uint64           // no commit in these packs is later
	// places caches where content was found. Without it, another lookup would read and hash the content again.
	places *recent.Shared[contentStart, foundLocation]
}

// contentStart is a table and the start of a hash.
type contentStart [1 + keys.HashPrefix]byte

// place returns a number that identifies the hash.
func (s contentStart) place() uint64 { return binary.LittleEndian.Uint64(s[1:]) }

// foundLocation is where content is, and the commit that stored it.
type foundLocation struct {
	keys.Location
	commit uint64
}

// Has implements entries.Below.
func (l *packLayer) Has(p journal.Position) bool { return p.Segment <= l.last }

// Found implements entries.Below.
func (l *packLayer) Found(key []byte, p keys.Location, commit uint64) {
	l.places.Set(contentStart(key), foundLocation{p, commit})
}

// maxPlace is larger than any place of a run.
const maxPlace = 1<<64 - 1

// anyCommit matches entries of any commit.
const anyCommit = 1<<64 - 1

// in returns the given files, or if they are nil the current ones, and a function that releases what it returned.
func (l *packLayer) in(files *journal.FileSet) (*journal.FileSet, func()) {
	if files != nil {
		return files, func() {}
	}
	now := l.files()
	return now, now.Release
}

// get returns the value that the index would have under a key.
func (l *packLayer) get(files *journal.FileSet, key []byte, before uint64) (value []byte, ok bool, err error) {
	if l.last == 0 {
		return nil, false, nil
	}
	switch key[0] {
	case keys.TableBlock, keys.TableChunk:
		p, _, ok, err := l.content(files, key, before)
		if err != nil || !ok {
			return nil, false, err
		}
		return p.Append(nil), true, nil
	case keys.TableSpan:
		ref := structure.SpanRef{Run: structure.RunID(key[1:17]), Seq: keys.ReadUint64(key[17:])}
		spans, at, err := l.spansAt(files, ref, before)
		if err != nil || !spans.Has(ref.Seq) {
			return nil, false, err
		}
		return keys.AppendPosition(nil, at), true, nil
	}
	return nil, false, nil
}

// content finds a block or chunk by its index key. It also returns the record if the record was read to find it.
func (l *packLayer) content(files *journal.FileSet, key []byte, before uint64) (p keys.Location, r structure.Record, ok bool, err error) {
	start := contentStart(key)
	if l.last == 0 || l.hidden != nil && l.hidden.Dead(key, nil) || l.absent.content(key[1:]) {
		return p, nil, false, nil
	}
	if at, ok := l.places.Get(start); ok && at.commit < before {
		return at.Location, nil, true, nil
	}
	files, release := l.in(files)
	defer release()
	kind := structure.KindBlock
	if key[0] == keys.TableChunk {
		kind = structure.KindChunk
	}
	f, ok, err := files.Find(l.last, kind, key[1:], before)
	if err != nil || !ok {
		return p, nil, false, err
	}
	p = keys.Location{Frame: f.Frame, Record: f.Offset}
	switch r := f.Record.(type) {
	case *structure.Block:
		p.Size = r.Size
	case *structure.Chunk:
		p.Size = int64(len(r.Bytes))
	}
	if before > l.number { // no later commit has it
		l.places.Set(start, foundLocation{p, f.Commit})
	}
	return p, f.Record, true, nil
}

// spansAt returns the live spans from before a commit that a pack stores together
// with the given span, or none if no pack has it.
func (l *packLayer) spansAt(files *journal.FileSet, ref structure.SpanRef, before uint64) (found journal.Spans, at journal.Position, err error) {
	if l.last == 0 || l.clip(ref.Run, ref.Seq) < ref.Seq {
		return journal.Spans{}, journal.Position{}, nil
	}
	files, release := l.in(files)
	defer release() // then a pack that was replaced is closed
	for s, err := range files.Run(l.last, ref.Run, ref.Seq, before) {
		if err != nil {
			return journal.Spans{}, journal.Position{}, err
		}
		if s.Last < ref.Seq {
			break
		}
		if s.First <= ref.Seq {
			at, err := s.Position(ref.Seq)
			return s.UpTo(l.clip(ref.Run, s.Last)), at, err
		}
	}
	return journal.Spans{}, journal.Position{}, nil
}

// clip returns last or, if smaller, the last live place of a run.
func (l *packLayer) clip(run structure.RunID, last uint64) uint64 {
	if l.hidden == nil {
		return last
	}
	return l.hidden.Clip(run, last)
}

// end returns the last place of a run in packs from before a commit.
func (l *packLayer) end(files *journal.FileSet, run structure.RunID, before uint64) (uint64, error) {
	if l.last == 0 {
		return 0, nil
	}
	files, release := l.in(files)
	defer release()
	for s, err := range files.Run(l.last, run, maxPlace, before) {
		if err != nil {
			return 0, err
		}
		return l.clip(run, s.Last), nil
	}
	return 0, nil
}

// agrees reports whether an index entry agrees with the packs among some files.
func (l *packLayer) agrees(files *journal.FileSet, k, value []byte) (bool, error) {
	if !inPacks(k, value, l.last) {
		return false, nil
	}
	if k[0] == keys.TableCommit {
		p, ok, err := files.Commit(l.last, keys.ReadUint64(k[1:]))
		return ok && bytes.Equal(keys.AppendPosition(nil, p), value), err
	}
	packed, ok, err := l.get(files, k, anyCommit)
	return ok && bytes.Equal(packed, value), err
}

// inPacks reports whether the index does not need an entry because the packs, which cover
// all segments up to last, can answer the lookup.
func inPacks(key, value []byte, last uint32) bool {
	switch key[0] {
	case keys.TableBlock, keys.TableChunk:
		p, err := keys.ReadLocation(value)
		return err == nil && p.Frame.Segment <= last && p.Size <= content.InlineLimit
	case keys.TableSpan:
		p, err := keys.ReadSpanLocation(value)
		return err == nil && p.Frame.Segment <= last && keys.ReadUint64(key[17:])%keys.DigestEvery != 0
	case keys.TableCommit:
		v := keys.ReadVarints(value)
		p := keys.ReadPosition(&v)
		return v.Err() == nil && p.Segment <= last
	}
	return false
}
