package lookup

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"github.com/lineage-store/lineage/internal/pack/layout"
)

const (
	maxInBucket = 128 // on average
	maxBuckets  = 1 << 24
)

// Buckets are a hash table of fingers: a bucket has the fingerprints that start with
// the same bits, in order.
type Buckets struct {
	fingers uint64
	numbers uint64 // all numbers are less
	offsets []int64
}

// bucketBits is the number of fingerprint bits that select a bucket.
func bucketBits(fingers uint64) int { return max(bits.Len64(fingers/maxInBucket), 0) }

// shape returns the numbers of bits that select a bucket, that are stored unchanged
// for a fingerprint, and that are stored for a number.
func (b *Buckets) shape() (bucket, plain, number int) {
	bucket = bucketBits(b.fingers)
	rest := 32 - bucket
	plain = max(rest-bits.Len64(b.fingers>>bucket), 0)
	return bucket, plain, bits.Len64(max(b.numbers, 1) - 1)
}

// encode writes the buckets one after the other, each with its checksum; an empty one
// takes no bytes. A bucket is a varint with the number of its fingers, and bits,
// lowest first: for each finger the difference of its fingerprint to the one before
// (higher bits in unary, as ones and a zero; lower bits unchanged), and its number.
func (b *Buckets) encode(dst []byte, fingers []Finger, numbers uint64) []byte {
	b.fingers, b.numbers = uint64(len(fingers)), numbers
	slices.SortFunc(fingers, func(x, y Finger) int {
		return cmp.Or(cmp.Compare(x.Print, y.Print), cmp.Compare(x.Number, y.Number))
	})
	bucket, plain, number := b.shape()
	for i := range uint64(1) << bucket {
		n := 0
		for n < len(fingers) && uint64(fingers[n].Print)>>(32-bucket) == i {
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
			d := f.Print - last
			for range d >> plain {
				w.put(1, 1)
			}
			w.put(0, 1)
			w.put(uint64(d)&(1<<plain-1), plain)
			w.put(uint64(f.Number), number)
			last = f.Print
		}
		dst = layout.AppendSum(w.finish(), start)
		b.offsets = append(b.offsets, int64(len(dst)-start))
		fingers = fingers[n:]
	}
	return dst
}

// Read decodes a bucket and calls show with its fingers until it returns false.
func (b *Buckets) Read(raw []byte, i uint64, show func(Finger) bool) error {
	bucket, plain, number := b.shape()
	n, w := binary.Uvarint(raw)
	if w <= 0 || n == 0 || n > uint64(len(raw))*8 {
		return ErrMalformed
	}
	r := bitReader{b: raw[w:]}
	first := i << (32 - bucket)
	last := first
	for range n {
		last += r.ones()<<plain | r.take(plain)
		f := Finger{uint32(last), uint32(r.take(number))}
		if r.bad || last-first >= 1<<(32-bucket) || uint64(f.Number) >= b.numbers {
			return ErrMalformed
		}
		if !show(f) {
			return nil
		}
	}
	if !r.spent() {
		return ErrMalformed
	}
	return nil
}

var ErrMalformed = errors.New("malformed lookup tables")

// Count is the number of buckets, of a table that was read.
func (b *Buckets) Count() int { return len(b.offsets) - 1 }

// At returns the range of the i-th bucket in the file.
func (b *Buckets) At(i uint64) layout.Range {
	return layout.Range{Offset: b.offsets[i], Size: b.offsets[i+1] - b.offsets[i]}
}

// Of returns the bucket of a fingerprint.
func (b *Buckets) Of(print uint32) uint64 {
	bucket, _, _ := b.shape()
	return uint64(print) >> (32 - bucket)
}
