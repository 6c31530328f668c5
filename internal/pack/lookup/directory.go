package lookup

import (
	"encoding/binary"
	"maps"
	"slices"
	"sort"

	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/structure"
)

// Directory locates the lookup tables.
type Directory struct {
	counts        []uint32 // numbers per chapter
	starts        []uint32 // first number of each chapter
	Content, Runs Buckets
	lists         []int64 // offset of each list; sizes while writing
	// shared has, by number, the ids of runs that share a fingerprint.
	shared map[uint32]structure.RunID
}

// encode writes the directory and its checksum: the number of chapters, and the number
// of objects in each; for content and then for runs, the number of fingers and the
// size of each bucket; the size of each list; the number of runs that share a
// fingerprint, and the number and id of each. Numbers are varints.
func (d *Directory) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(len(d.counts)))
	for _, n := range d.counts {
		b = binary.AppendUvarint(b, uint64(n))
	}
	for _, t := range []*Buckets{&d.Content, &d.Runs} {
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
	return layout.AppendSum(b, 0)
}

// ReadDirectory decodes a directory without its checksum. The tables are between two
// offsets of the file.
func ReadDirectory(b []byte, from, to int64) (*Directory, error) {
	v := varint.Reader{Rest: b}
	d := &Directory{shared: map[uint32]structure.RunID{}}
	var numbers uint64
	for range v.AtMost(uint64(len(b))) {
		n := v.AtMost(1<<32 - 1)
		d.starts = append(d.starts, uint32(numbers))
		d.counts = append(d.counts, uint32(n))
		if numbers += n; numbers >= 1<<32 {
			return nil, ErrMalformed
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
	for _, t := range []*Buckets{&d.Content, &d.Runs} {
		t.fingers, t.numbers = v.AtMost(1<<32-1), numbers
		if t == &d.Runs {
			t.numbers = t.fingers
		}
		bucket := bucketBits(t.fingers)
		if 1<<bucket > maxBuckets || 1<<bucket > len(v.Rest) {
			return nil, ErrMalformed
		}
		t.offsets = make([]int64, 0, 1<<bucket+1)
		for range 1 << bucket {
			t.offsets = append(t.offsets, size())
		}
		t.offsets = append(t.offsets, at)
	}
	lists := (d.Runs.fingers + runsPerList - 1) / runsPerList
	if lists > uint64(len(v.Rest)) {
		return nil, ErrMalformed
	}
	for range lists {
		d.lists = append(d.lists, size())
	}
	for range v.AtMost(uint64(len(v.Rest))) {
		n := v.AtMost(1<<32 - 1)
		var id structure.RunID
		if v.Bad = v.Bad || len(v.Rest) < len(id); v.Bad {
			return nil, ErrMalformed
		}
		v.Rest = v.Rest[copy(id[:], v.Rest):]
		d.shared[uint32(n)] = id
	}
	if v.Bad || len(v.Rest) > 0 || at != to {
		return nil, ErrMalformed
	}
	d.lists = append(d.lists, at)
	return d, nil
}

// ChapterOf returns the chapter of the object with a number, or -1, and its index there.
func (d *Directory) ChapterOf(number uint32) (chapter, index int) {
	n := sort.Search(len(d.starts), func(i int) bool { return d.starts[i] > number }) - 1
	for n > 0 && d.counts[n] == 0 {
		n--
	}
	if n < 0 {
		return -1, 0
	}
	return n, int(number - d.starts[n])
}

// ListCount is the number of lists of runs.
func (d *Directory) ListCount() int { return len(d.lists) - 1 }

// List returns the range of the i-th list in the file.
func (d *Directory) List(i int) layout.Range {
	return layout.Range{Offset: d.lists[i], Size: d.lists[i+1] - d.lists[i]}
}

// ReadList decodes the i-th list.
func (d *Directory) ReadList(b []byte, i int, h layout.Header) ([][]Stretch, error) {
	return readRuns(b, min(runsPerList, int(d.Runs.fingers)-i*runsPerList), h)
}

// ListOf returns the list of the run with a number, and its index there.
func (d *Directory) ListOf(number uint32) (list, index int) {
	return int(number / runsPerList), int(number % runsPerList)
}

// IDOf returns the id of the run with a number, if it shares its fingerprint with another run.
func (d *Directory) IDOf(number uint32) (id structure.RunID, shares bool) {
	id, shares = d.shared[number]
	return id, shares
}
