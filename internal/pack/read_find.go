package pack

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/pack/lookup"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// ErrLookup is returned, together with a CorruptError, when the lookup tables of a
// pack are damaged. The commits of the pack can be read without them.
var ErrLookup = errors.New("index of a pack is damaged")

// ErrUnlisted is returned for a pack that was written without lookup tables.
var ErrUnlisted = errors.New("pack has no index")

// Listed reports whether the pack has lookup tables.
func (p *File) Listed() bool { return p.foot.DirectorySize > 0 }

func (p *File) lookupFault(err error) error {
	if errors.Is(err, backend.ErrCorrupt) {
		return fmt.Errorf("%w: %w; to repair: %s", ErrLookup, err, backend.RebuildIndex)
	}
	return err
}

// directory returns the directory of the lookup tables.
func (p *File) directory() (*lookup.Directory, error) {
	if d := p.found.Load(); d != nil {
		return d, nil
	}
	d, err := p.loadDirectory()
	if err != nil {
		return nil, p.lookupFault(err)
	}
	p.found.Store(d)
	return d, nil
}

func (p *File) loadDirectory() (*lookup.Directory, error) {
	if !p.Listed() {
		return nil, fmt.Errorf("%s: %w", p.name, ErrUnlisted)
	}
	to := p.foot.ParityAt(p.size) - int64(p.foot.DirectorySize)
	b, err := p.part(layout.Range{Offset: to, Size: int64(p.foot.DirectorySize)})
	if err != nil {
		return nil, err
	}
	d, err := lookup.ReadDirectory(b, p.foot.LookupAt(), to)
	if err != nil {
		return nil, p.corrupt(to, err.Error())
	}
	return d, nil
}

// fingers calls show with the fingers of a bucket until it returns false.
func (p *File) fingers(t *lookup.Buckets, i uint64, show func(lookup.Finger) bool) error {
	at := t.At(i)
	if at.Size == 0 {
		return nil
	}
	b, err := p.part(at)
	if err != nil {
		return err
	}
	if err := t.Read(b, i, show); err != nil {
		return p.corrupt(at.Offset, err.Error())
	}
	return nil
}

// candidates returns in order the numbers of objects with a fingerprint.
func (p *File) candidates(t *lookup.Buckets, print uint32) (numbers []uint32, err error) {
	err = p.fingers(t, t.Of(print), func(f lookup.Finger) bool {
		if f.Print == print {
			numbers = append(numbers, f.Number)
		}
		return f.Print <= print
	})
	return numbers, err
}

// Fingerprints yields the fingerprints of all content in the pack.
func (p *File) Fingerprints() iter.Seq2[uint32, error] {
	return func(yield func(uint32, error) bool) {
		d, err := p.directory()
		if err != nil {
			yield(0, err)
			return
		}
		for i := range d.Content.Count() {
			more := true
			err := p.fingers(&d.Content, uint64(i), func(f lookup.Finger) bool {
				more = yield(f.Print, nil)
				return more
			})
			if err != nil {
				yield(0, p.lookupFault(err))
				return
			}
			if !more {
				return
			}
		}
	}
}

// Object is a block or chunk in a pack, with the position of its record in the
// journal.
type Object struct {
	Commit        uint64
	Segment       uint32
	Frame, Offset int64
	Record        structure.Record
}

// Find returns the last block or chunk from before a commit whose hash starts with
// start.
func (p *File) Find(kind structure.Kind, start []byte, before uint64) (Object, bool, error) {
	d, err := p.directory()
	if err != nil {
		return Object{}, false, err
	}
	numbers, err := p.candidates(&d.Content, lookup.Fingerprint(start))
	if err != nil {
		return Object{}, false, p.lookupFault(err)
	}
	for i := len(numbers) - 1; i >= 0; i-- {
		o, ok, err := p.numbered(d, numbers[i], kind, start, before)
		if err != nil || ok {
			return o, ok, err
		}
	}
	return Object{}, false, nil
}

// numbered reads the object with a number and reports whether it is the one
// searched for.
func (p *File) numbered(d *lookup.Directory, number uint32, kind structure.Kind, start []byte, before uint64) (o Object, ok bool, err error) {
	rows, err := p.table()
	if err != nil {
		return o, false, err
	}
	n, i := d.ChapterOf(number)
	if n < 0 || n >= len(rows) {
		return o, false, p.lookupFault(p.corrupt(p.foot.TableAt, lookup.ErrMalformed.Error()))
	}
	if rows[n].First() >= before {
		return o, false, nil
	}
	in, err := p.objects(n)
	if err != nil {
		return o, false, err
	}
	if i >= len(in.list) {
		return o, false, p.lookupFault(p.corrupt(p.foot.TableAt, lookup.ErrMalformed.Error()))
	}
	x := &in.list[i]
	if x.commit >= before {
		return o, false, nil
	}
	o = Object{Commit: x.commit, Segment: x.segment, Frame: x.frame, Offset: x.at}
	if x.record == nil {
		at, err := p.locate(x.segment, x.frame)
		if err != nil {
			return o, false, err
		}
		return p.inVerbatim(o, at, kind, start)
	}
	if x.record.Kind() != kind {
		return o, false, nil
	}
	if o.Record, err = p.whole(in, x, start); o.Record == nil || err != nil {
		return o, false, err
	}
	return o, true, nil
}

// inVerbatim searches a verbatim payload. The last match counts.
func (p *File) inVerbatim(o Object, in commitPiece, kind structure.Kind, start []byte) (Object, bool, error) {
	body, err := p.bodyIn(in.c.bodies, uint64(in.x.Bodies[0]))
	if err != nil {
		return o, false, err
	}
	d, err := structure.NewDecoder(bytes.Clone(body))
	found := false
	for err == nil && d.More() {
		var at int
		var r structure.Record
		if at, r, err = d.Next(); err != nil || r.Kind() != kind {
			continue
		}
		if hash := hashOf(r); bytes.HasPrefix(hash[:], start) {
			o.Offset, o.Record, found = in.x.PayloadAt()+int64(at), r, true
		}
	}
	return o, found && err == nil, nil
}

func hashOf(r structure.Record) (hash [32]byte) {
	switch r := r.(type) {
	case *structure.Block:
		hash = r.ID
	case *structure.Chunk:
		hash = r.Key
	}
	return hash
}
