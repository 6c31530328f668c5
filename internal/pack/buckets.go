package pack

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
)

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

var errLookup = errors.New("malformed lookup tables")

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

// count is the number of buckets, of a table that was read.
func (b *buckets) count() int { return len(b.offsets) - 1 }

// at returns the range of the i-th bucket in the file.
func (b *buckets) at(i uint64) part { return part{b.offsets[i], b.offsets[i+1] - b.offsets[i]} }

// of returns the bucket of a fingerprint.
func (b *buckets) of(print uint32) uint64 {
	bucket, _, _ := b.shape()
	return uint64(print) >> (32 - bucket)
}
