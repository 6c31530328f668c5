package pack

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"math/bits"
	"slices"

	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/structure"
)

// A pack can look up its own content and spans, so that the index need not. The lookup
// tables follow the table of chapters:
//
//   - buckets of content: the fingerprint and number of every block and chunk. Objects
//     are numbered in the order of their records; a verbatim payload has one number
//     for all of its objects;
//   - buckets of runs: the fingerprint and number of every run with spans in the pack;
//   - lists of runs, 64 per list: which commits contain which places of the run;
//   - the directory: how many numbers each chapter has, and the sizes of the tables.
//
// A fingerprint is four bytes of a hash. A match is read and compared with the full
// key, so a lookup never returns another object.
const (
	maxInBucket = 128 // on average
	runsPerList = 64
	maxBuckets  = 1 << 24
)

// Fingerprint returns the part of a content hash that packs store.
func Fingerprint(hash []byte) uint32 { return binary.BigEndian.Uint32(hash) }

// runFingerprint mixes the bits of a run's id, which starts with a time.
func runFingerprint(id structure.RunID) uint32 {
	x := binary.LittleEndian.Uint64(id[:]) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(id[8:]), 29)
	x = (x ^ x>>31) * 0x9e3779b97f4a7c15
	x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
	return uint32(x >> 32)
}

// finger is a fingerprint and the number of its object.
type finger struct{ print, number uint32 }

// stretch is a range of consecutive commits that each added the same number of spans
// to a run.
type stretch struct {
	commit, commits uint64
	spans           uint64 // per commit
	first           uint64 // place of the first span
	// piece is the piece of the commit with the first span: 0 is in the chapter where
	// the commit begins. It is set for the first stretch of a run.
	piece int
}

func (s *stretch) last() uint64 { return s.first + s.commits*s.spans - 1 }

// lookup collects the lookup tables of a pack.
type lookup struct {
	content []finger
	numbers uint32
	counts  []uint32 // of numbers, per chapter
	runs    [][]stretch
	ids     []structure.RunID
	latest  map[structure.RunID]int
}

// add adds the objects in a piece of a commit. For a verbatim commit, records are the
// decoded payload.
func (l *lookup) add(number uint64, piece int, records []structure.Record, verbatim bool) {
	for _, r := range records {
		switch r := r.(type) {
		case *structure.Block:
			l.object(r.ID[:], verbatim)
		case *structure.Chunk:
			l.object(r.Key[:], verbatim)
		case *structure.Span:
			l.span(number, piece, r.Ref)
		}
	}
	if verbatim {
		l.numbers++
	}
}

func (l *lookup) object(hash []byte, verbatim bool) {
	l.content = append(l.content, finger{Fingerprint(hash), l.numbers})
	if !verbatim {
		l.numbers++
	}
}

// span adds a span to its run. A gap starts a new entry for the run.
func (l *lookup) span(commit uint64, piece int, ref structure.SpanRef) {
	at, ok := l.latest[ref.Run]
	if ok {
		run := l.runs[at]
		s := &run[len(run)-1]
		switch {
		case s.last()+1 != ref.Seq:
			ok = false
		case s.commit+s.commits-1 != commit:
			l.runs[at] = append(joined(run), stretch{commit: commit, commits: 1, spans: 1, first: ref.Seq})
		default: // still the commit's own stretch
			s.spans++
		}
	}
	if !ok {
		if l.latest == nil {
			l.latest = map[structure.RunID]int{}
		}
		l.latest[ref.Run] = len(l.runs)
		l.runs = append(l.runs, []stretch{{commit: commit, commits: 1, spans: 1, first: ref.Seq, piece: piece}})
		l.ids = append(l.ids, ref.Run)
	}
}

// joined merges the last stretch, which is complete, into the one before it if it has
// the same form.
func joined(run []stretch) []stretch {
	n := len(run) - 1
	if n == 0 {
		return run
	}
	a, b := &run[n-1], &run[n]
	if a.spans != b.spans || a.commit+a.commits != b.commit {
		return run
	}
	a.commits += b.commits
	return run[:n]
}

// chapter records the number of objects in the next chapter.
func (l *lookup) chapter(numbers int) { l.counts = append(l.counts, uint32(numbers)) }

// encode returns the tables, each with its checksum, and the directory.
func (l *lookup) encode(firstCommit uint64) (parts, index []byte) {
	d := &directory{counts: l.counts}
	runs := make([]finger, len(l.runs))
	for i := range l.runs {
		l.runs[i] = joined(l.runs[i])
		runs[i] = finger{runFingerprint(l.ids[i]), uint32(i)}
	}
	d.shared = l.shared(runs)
	parts = d.content.encode(parts, l.content, uint64(l.numbers))
	parts = d.runs.encode(parts, runs, uint64(len(runs)))
	for list := range slices.Chunk(l.runs, runsPerList) {
		start := len(parts)
		parts = appendRuns(parts, list, firstCommit)
		parts = summed(parts, start)
		d.lists = append(d.lists, int64(len(parts)-start))
	}
	return parts, d.encode()
}

// shared returns, by number, the ids of runs that share a fingerprint.
func (l *lookup) shared(runs []finger) map[uint32]structure.RunID {
	by := make(map[uint32]structure.RunID, len(runs))
	common := map[uint32]bool{}
	for _, f := range runs {
		id := l.ids[f.number]
		if other, ok := by[f.print]; ok && other != id {
			common[f.print] = true
		}
		by[f.print] = id
	}
	out := map[uint32]structure.RunID{}
	for _, f := range runs {
		if common[f.print] {
			out[f.number] = l.ids[f.number]
		}
	}
	return out
}

// summed appends the checksum of the bytes from start.
func summed(b []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// appendRuns writes a list of runs, ordered by their first commits. For each run: the
// number of its stretches; its first place; its first commit, as the difference to
// that of the run before; its piece. For each stretch: the number of commits skipped
// since the one before × 4, plus 1 if it has several commits and 2 if it has several
// spans per commit; then, if so, the number of commits less 2, and of spans less 2.
func appendRuns(dst []byte, list [][]stretch, commit uint64) []byte {
	for _, run := range list {
		dst = binary.AppendUvarint(dst, uint64(len(run)))
		dst = binary.AppendUvarint(dst, run[0].first)
		next := run[0].commit
		dst = binary.AppendUvarint(dst, next-commit)
		dst = binary.AppendUvarint(dst, uint64(run[0].piece))
		commit = next
		for _, s := range run {
			v := (s.commit - next) << 2
			if s.commits > 1 {
				v |= 1
			}
			if s.spans > 1 {
				v |= 2
			}
			dst = binary.AppendUvarint(dst, v)
			if s.commits > 1 {
				dst = binary.AppendUvarint(dst, s.commits-2)
			}
			if s.spans > 1 {
				dst = binary.AppendUvarint(dst, s.spans-2)
			}
			next = s.commit + s.commits
		}
	}
	return dst
}

var errLookup = errors.New("malformed lookup tables")

// readRuns decodes a list of n runs.
func readRuns(b []byte, n int, h Header) ([][]stretch, error) {
	v := varint.Reader{Rest: b}
	commit := h.FirstCommit
	var list [][]stretch
	for range n {
		stretches := v.AtMost(uint64(len(v.Rest)))
		if stretches == 0 {
			return nil, errLookup
		}
		run := make([]stretch, 0, stretches)
		place := v.AtMost(1<<64 - 1)
		commit += v.AtMost(h.LastCommit)
		next, piece := commit, int(v.AtMost(1<<31))
		for range stretches {
			head := v.AtMost(1 << 62)
			s := stretch{commit: next + head>>2, commits: 1, spans: 1, first: place, piece: piece}
			piece = 0
			if head&1 != 0 {
				s.commits = v.AtMost(1<<40) + 2
			}
			if head&2 != 0 {
				s.spans = v.AtMost(1<<30) + 2
			}
			next = s.commit + s.commits
			if v.Bad || next > h.LastCommit+1 || s.commits > 1<<62/s.spans || place+s.commits*s.spans-1 < place {
				return nil, errLookup
			}
			place += s.commits * s.spans
			run = append(run, s)
		}
		list = append(list, run)
	}
	if v.Bad || len(v.Rest) > 0 {
		return nil, errLookup
	}
	return list, nil
}

// buckets are a hash table of fingers: a bucket has the fingerprints that start with
// the same bits, in order.
type buckets struct {
	fingers uint64
	numbers uint64 // all numbers are less
	offsets []int64
}

// bucketBits is the number of fingerprint bits that select a bucket.
func bucketBits(fingers uint64) int { return max(bits.Len64(fingers/maxInBucket), 0) }

// shape returns the numbers of bits that select a bucket, that are stored unchanged
// for a fingerprint, and that are stored for a number.
func (b *buckets) shape() (bucket, plain, number int) {
	bucket = bucketBits(b.fingers)
	rest := 32 - bucket
	plain = max(rest-bits.Len64(b.fingers>>bucket), 0)
	return bucket, plain, bits.Len64(max(b.numbers, 1) - 1)
}

// encode writes the buckets one after the other, each with its checksum; an empty one
// takes no bytes. A bucket is a varint with the number of its fingers, and bits,
// lowest first: for each finger the difference of its fingerprint to the one before
// (higher bits in unary, as ones and a zero; lower bits unchanged), and its number.
func (b *buckets) encode(dst []byte, fingers []finger, numbers uint64) []byte {
	b.fingers, b.numbers = uint64(len(fingers)), numbers
	slices.SortFunc(fingers, func(x, y finger) int {
		return cmp.Or(cmp.Compare(x.print, y.print), cmp.Compare(x.number, y.number))
	})
	bucket, plain, number := b.shape()
	for i := range uint64(1) << bucket {
		n := 0
		for n < len(fingers) && uint64(fingers[n].print)>>(32-bucket) == i {
			n++
		}
		if n == 0 {
			b.offsets = append(b.offsets, 0)
			continue
		}
		start := len(dst)
		w := bitWriter{b: binary.AppendUvarint(dst, uint64(n))}
		last := uint32(i << (32 - bucket))
		for _, f := range fingers[:n] {
			d := f.print - last
			for range d >> plain {
				w.put(1, 1)
			}
			w.put(0, 1)
			w.put(uint64(d)&(1<<plain-1), plain)
			w.put(uint64(f.number), number)
			last = f.print
		}
		dst = summed(w.finish(), start)
		b.offsets = append(b.offsets, int64(len(dst)-start))
		fingers = fingers[n:]
	}
	return dst
}

// read decodes a bucket and calls show with its fingers until it returns false.
func (b *buckets) read(raw []byte, i uint64, show func(finger) bool) error {
	bucket, plain, number := b.shape()
	n, w := binary.Uvarint(raw)
	if w <= 0 || n == 0 || n > uint64(len(raw))*8 {
		return errLookup
	}
	r := bitReader{b: raw[w:]}
	first := i << (32 - bucket)
	last := first
	for range n {
		last += r.ones()<<plain | r.take(plain)
		f := finger{uint32(last), uint32(r.take(number))}
		if r.bad || last-first >= 1<<(32-bucket) || uint64(f.number) >= b.numbers {
			return errLookup
		}
		if !show(f) {
			return nil
		}
	}
	if !r.spent() {
		return errLookup
	}
	return nil
}

// directory locates the lookup tables.
type directory struct {
	counts        []uint32 // numbers per chapter
	starts        []uint32 // first number of each chapter
	content, runs buckets
	lists         []int64 // offset of each list; sizes while writing
	// shared has, by number, the ids of runs that share a fingerprint.
	shared map[uint32]structure.RunID
}

// encode writes the directory and its checksum: the number of chapters, and the number
// of objects in each; for content and then for runs, the number of fingers and the
// size of each bucket; the size of each list; the number of runs that share a
// fingerprint, and the number and id of each. Numbers are varints.
func (d *directory) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(len(d.counts)))
	for _, n := range d.counts {
		b = binary.AppendUvarint(b, uint64(n))
	}
	for _, t := range []*buckets{&d.content, &d.runs} {
		b = binary.AppendUvarint(b, t.fingers)
		for _, size := range t.offsets {
			b = binary.AppendUvarint(b, uint64(size))
		}
	}
	for _, size := range d.lists {
		b = binary.AppendUvarint(b, uint64(size))
	}
	b = binary.AppendUvarint(b, uint64(len(d.shared)))
	for _, n := range slices.Sorted(maps.Keys(d.shared)) {
		id := d.shared[n]
		b = append(binary.AppendUvarint(b, uint64(n)), id[:]...)
	}
	return summed(b, 0)
}

// readDirectory decodes a directory without its checksum. The tables are between two
// offsets of the file.
func readDirectory(b []byte, from, to int64) (*directory, error) {
	v := varint.Reader{Rest: b}
	d := &directory{shared: map[uint32]structure.RunID{}}
	var numbers uint64
	for range v.AtMost(uint64(len(b))) {
		n := v.AtMost(1<<32 - 1)
		d.starts = append(d.starts, uint32(numbers))
		d.counts = append(d.counts, uint32(n))
		if numbers += n; numbers >= 1<<32 {
			return nil, errLookup
		}
	}
	at := from
	size := func() int64 {
		begin := at
		at += int64(v.AtMost(uint64(to - from)))
		if at > to {
			v.Bad = true
		}
		return begin
	}
	for _, t := range []*buckets{&d.content, &d.runs} {
		t.fingers, t.numbers = v.AtMost(1<<32-1), numbers
		if t == &d.runs {
			t.numbers = t.fingers
		}
		bucket := bucketBits(t.fingers)
		if 1<<bucket > maxBuckets || 1<<bucket > len(v.Rest) {
			return nil, errLookup
		}
		t.offsets = make([]int64, 0, 1<<bucket+1)
		for range 1 << bucket {
			t.offsets = append(t.offsets, size())
		}
		t.offsets = append(t.offsets, at)
	}
	lists := (d.runs.fingers + runsPerList - 1) / runsPerList
	if lists > uint64(len(v.Rest)) {
		return nil, errLookup
	}
	for range lists {
		d.lists = append(d.lists, size())
	}
	for range v.AtMost(uint64(len(v.Rest))) {
		n := v.AtMost(1<<32 - 1)
		var id structure.RunID
		if v.Bad = v.Bad || len(v.Rest) < len(id); v.Bad {
			return nil, errLookup
		}
		v.Rest = v.Rest[copy(id[:], v.Rest):]
		d.shared[uint32(n)] = id
	}
	if v.Bad || len(v.Rest) > 0 || at != to {
		return nil, errLookup
	}
	d.lists = append(d.lists, at)
	return d, nil
}
