package pack

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"sort"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// ErrLookup is returned, together with a CorruptError, when the lookup tables of a
// pack are damaged. The commits of the pack can be read without them.
var ErrLookup = errors.New("index of a pack is damaged")

// ErrUnlisted is returned for a pack that was written without lookup tables.
var ErrUnlisted = errors.New("pack has no index")

func (p *File) lookupFault(err error) error {
	if errors.Is(err, backend.ErrCorrupt) {
		return fmt.Errorf("%w: %w; to repair: %s", ErrLookup, err, backend.RebuildIndex)
	}
	return err
}

// directory returns the directory of the lookup tables.
func (p *File) directory() (*directory, error) {
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

func (p *File) loadDirectory() (*directory, error) {
	if p.foot.directory == 0 {
		return nil, fmt.Errorf("%s: %w", p.name, ErrUnlisted)
	}
	to := p.foot.parityAt(p.size) - int64(p.foot.directory)
	b, err := p.part(part{to, int64(p.foot.directory)})
	if err != nil {
		return nil, err
	}
	d, err := readDirectory(b, p.foot.lookupAt(), to)
	if err != nil {
		return nil, p.corrupt(to, err.Error())
	}
	return d, nil
}

// fingers calls show with the fingers of a bucket until it returns false.
func (p *File) fingers(t *buckets, i uint64, show func(finger) bool) error {
	at := part{t.offsets[i], t.offsets[i+1] - t.offsets[i]}
	if at.size == 0 {
		return nil
	}
	b, err := p.part(at)
	if err != nil {
		return err
	}
	if err := t.read(b, i, show); err != nil {
		return p.corrupt(at.offset, err.Error())
	}
	return nil
}

// candidates returns in order the numbers of objects with a fingerprint.
func (p *File) candidates(t *buckets, print uint32) (numbers []uint32, err error) {
	bucket, _, _ := t.shape()
	err = p.fingers(t, uint64(print)>>(32-bucket), func(f finger) bool {
		if f.print == print {
			numbers = append(numbers, f.number)
		}
		return f.print <= print
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
		for i := range len(d.content.offsets) - 1 {
			more := true
			err := p.fingers(&d.content, uint64(i), func(f finger) bool {
				more = yield(f.print, nil)
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
	numbers, err := p.candidates(&d.content, Fingerprint(start))
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
func (p *File) numbered(d *directory, number uint32, kind structure.Kind, start []byte, before uint64) (o Object, ok bool, err error) {
	rows, err := p.table()
	if err != nil {
		return o, false, err
	}
	n := sort.Search(len(d.starts), func(i int) bool { return d.starts[i] > number }) - 1
	for n > 0 && d.counts[n] == 0 {
		n--
	}
	if n < 0 || n >= len(rows) {
		return o, false, p.lookupFault(p.corrupt(p.foot.offset, errLookup.Error()))
	}
	if rows[n].first() >= before {
		return o, false, nil
	}
	c, err := p.chapter(n)
	if err != nil {
		return o, false, err
	}
	i := int(number - d.starts[n])
	if i >= len(c.objects) {
		return o, false, p.lookupFault(p.corrupt(p.foot.offset, errLookup.Error()))
	}
	x := c.commits[c.objects[i].commit]
	if x.number >= before {
		return o, false, nil
	}
	o = Object{Commit: x.number, Segment: x.segment, Frame: x.start}
	if x.verbatim {
		return p.inVerbatim(o, c, x, kind, start)
	}
	at := c.objects[i].record
	places, err := p.places(piece{c, x, n})
	if err != nil {
		return o, false, err
	}
	o.Offset = x.payloadAt() + int64(places[at])
	if x.records[at].Kind() != kind {
		return o, false, nil
	}
	var body []byte
	if x.bodies[at] >= 0 {
		if body, err = p.bodyIn(c, uint64(x.bodies[at])); err != nil {
			return o, false, err
		}
	}
	switch r := x.records[at].(type) {
	case *structure.Block:
		out := *r
		if x.bodies[at] >= 0 {
			if out.ID = content.Sum(body); bytes.HasPrefix(out.ID[:], start) {
				out.Body = bytes.Clone(body)
			}
		}
		o.Record = &out
		return o, bytes.HasPrefix(out.ID[:], start), nil
	case *structure.Chunk:
		k := content.KeyOf(body)
		if ok = bytes.HasPrefix(k[:], start); ok {
			o.Record = &structure.Chunk{Key: k, Bytes: bytes.Clone(body)}
		}
	}
	return o, ok, nil
}

// inVerbatim searches a verbatim payload. The last match counts.
func (p *File) inVerbatim(o Object, c *chapter, x *commit, kind structure.Kind, start []byte) (Object, bool, error) {
	body, err := p.bodyIn(c, uint64(x.bodies[0]))
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
			o.Offset, o.Record, found = x.payloadAt()+int64(at), r, true
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

// objectAt is the place of a numbered object in its chapter. A verbatim payload has
// one number for all its objects.
type objectAt struct{ commit, record int }

// numbered returns the numbered objects of commits.
func numbered(commits []*commit) (objects []objectAt) {
	for i, x := range commits {
		if x.verbatim {
			objects = append(objects, objectAt{commit: i})
			continue
		}
		for k, r := range x.records {
			if kind := r.Kind(); kind == structure.KindBlock || kind == structure.KindChunk {
				objects = append(objects, objectAt{i, k})
			}
		}
	}
	return objects
}

// RunSpans are consecutive spans of a run, and the commits that contain them.
type RunSpans struct {
	First, Last uint64
	stretches   []stretch
}

// Commit returns the commit of the span at a place between First and Last.
func (s *RunSpans) Commit(place uint64) uint64 {
	i := sort.Search(len(s.stretches), func(i int) bool { return s.stretches[i].first > place }) - 1
	in := &s.stretches[max(i, 0)]
	return in.commit + (place-in.first)/in.spans
}

// Before returns the spans from before a commit, or nil for none.
func (s *RunSpans) Before(commit uint64) *RunSpans {
	i := sort.Search(len(s.stretches), func(i int) bool { return s.stretches[i].commit >= commit }) - 1
	if i < 0 {
		return nil
	}
	in := &s.stretches[i]
	return &RunSpans{s.First, in.first + min(in.commits, commit-in.commit)*in.spans - 1, s.stretches}
}

// UpTo returns the spans up to a place.
func (s *RunSpans) UpTo(last uint64) *RunSpans { return &RunSpans{s.First, last, s.stretches} }

// Run returns the spans of a run in the pack, usually as one element; the latest
// come last. If near is close to the wanted places, less is read.
func (p *File) Run(id structure.RunID, near uint64) ([]*RunSpans, error) {
	d, err := p.directory()
	if err != nil {
		return nil, err
	}
	numbers, err := p.candidates(&d.runs, runFingerprint(id))
	if err != nil {
		return nil, p.lookupFault(err)
	}
	var out []*RunSpans
	for _, n := range numbers {
		s, err := p.run(d, n, id, near)
		if err != nil {
			return nil, err
		}
		if s != nil {
			out = append(out, &s.RunSpans)
		}
	}
	return out, nil
}

// listedRun is a run found for an id.
type listedRun struct {
	RunSpans
	id structure.RunID
}

// run returns the run with a number if it has the id. Runs that share a fingerprint
// are listed in the directory with their ids; any other run is the right one if one
// of its spans is in the listed commit.
func (p *File) run(d *directory, number uint32, id structure.RunID, near uint64) (*listedRun, error) {
	k := cacheKey{p, cachedRun, uint64(number)}
	if s, ok := p.cache.get(k).(*listedRun); ok && s.id == id {
		return s, nil
	}
	own, shared := d.shared[number]
	if shared && own != id {
		return nil, nil
	}
	list := int(number / runsPerList)
	at := part{d.lists[list], d.lists[list+1] - d.lists[list]}
	b, err := p.part(at)
	if err != nil {
		return nil, p.lookupFault(err)
	}
	runs, err := readRuns(b, min(runsPerList, int(d.runs.fingers)-list*runsPerList), p.Header)
	if err != nil {
		return nil, p.lookupFault(p.corrupt(at.offset, err.Error()))
	}
	s := &listedRun{id: id}
	s.stretches = runs[number%runsPerList]
	s.First, s.Last = s.stretches[0].first, s.stretches[len(s.stretches)-1].last()
	if !shared {
		near = min(max(near, s.First), s.Last)
		has, err := p.hasSpan(s.Commit(near), structure.SpanRef{Run: id, Seq: near}, s.stretches[0])
		if err != nil || !has {
			return nil, err
		}
	}
	p.cache.put(k, s, int64(len(s.stretches))*40+128)
	p.cache.put(cacheKey{p, cachedBegin, uint64(runFingerprint(id))}, s, 64)
	return s, nil
}

// first is the first commit of which the chapter contains a part.
func (r *row) first() uint64 {
	if r.rest != nil {
		return r.commit - 1
	}
	return r.commit
}

// chapterOf returns the chapter in which a commit begins.
func (p *File) chapterOf(number uint64) (int, error) {
	rows, err := p.table()
	if err != nil {
		return 0, err
	}
	n := sort.Search(len(rows), func(i int) bool { return rows[i].commit > number }) - 1
	if n < 0 || number > p.LastCommit {
		return 0, p.corrupt(p.foot.offset, fmt.Sprintf("commit %d is in no chapter", number))
	}
	return n, nil
}

// commit returns a commit, or its first piece.
func (p *File) commit(number uint64) (piece, error) {
	n, err := p.chapterOf(number)
	if err != nil {
		return piece{}, err
	}
	c, err := p.chapter(n)
	if err != nil {
		return piece{}, err
	}
	return piece{c, c.commits[number-c.first()], n}, nil
}

// hasSpan reports whether a commit has a span. begins is the first stretch of the
// run.
func (p *File) hasSpan(number uint64, ref structure.SpanRef, begins stretch) (bool, error) {
	rests, n, err := p.restsOf(number)
	if err != nil {
		return false, err
	}
	var at piece
	if guess := guessPiece(rests, number, ref, begins); guess > 0 {
		if at, err = p.restIn(n + guess); err != nil || at.x.has(ref) {
			return err == nil, err
		}
	}
	if at, err = p.commit(number); err != nil {
		return false, err
	}
	if at.x.verbatim {
		return p.hasVerbatim(at, ref)
	}
	for {
		if at.x.has(ref) || !at.x.open {
			return at.x.has(ref), nil
		}
		if at, err = p.after(at); err != nil {
			return false, err
		}
	}
}

// has reports whether a span is among the records.
func (x *commit) has(ref structure.SpanRef) bool {
	for _, r := range x.records {
		if s, ok := r.(*structure.Span); ok && s.Ref == ref {
			return true
		}
	}
	return false
}

func (p *File) hasVerbatim(at piece, ref structure.SpanRef) (bool, error) {
	body, err := p.bodyIn(at.c, uint64(at.x.bodies[0]))
	if err != nil {
		return false, err
	}
	d, err := structure.NewDecoder(body)
	for err == nil && d.More() {
		var r structure.Record
		if _, r, err = d.Next(); err == nil {
			if s, ok := r.(*structure.Span); ok && s.Ref == ref {
				return true, nil
			}
		}
	}
	return false, nil
}

// Position returns the position of a commit's frame.
func (p *File) Position(number uint64) (segment uint32, offset int64, err error) {
	rests, _, err := p.restsOf(number)
	if err != nil {
		return 0, 0, err
	}
	if len(rests) > 0 {
		return rests[0].segment, rests[0].rest.start, nil
	}
	at, err := p.commit(number)
	if err != nil {
		return 0, 0, err
	}
	return at.x.segment, at.x.start, nil
}
