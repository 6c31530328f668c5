package sealed

import (
	"encoding/binary"
	"math/bits"
)

// A block of ids has a mask of the bits that are not the same in all of them (16 bytes), and of each
// id these bits, in order: the lower 64 of them after the others. The directory has the first id. So
// each id is read by itself.

// wide is a number of 128 bits.
type wide struct{ high, low uint64 }

func wideOf(id *[idSize]byte) wide {
	return wide{binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])}
}

func (w wide) id() (id [idSize]byte) {
	binary.BigEndian.PutUint64(id[:8], w.high)
	binary.BigEndian.PutUint64(id[8:], w.low)
	return id
}

func (w wide) less(than wide) bool {
	return w.high < than.high || w.high == than.high && w.low < than.low
}

// idBlock reads a block of ids.
type idBlock struct {
	first, mask wide
	count       int
	high, low   int // bits of a row
	rows        []byte
}

func (m wide) widths() (high, low int) {
	n := bits.OnesCount64(m.high) + bits.OnesCount64(m.low)
	return max(0, n-64), min(n, 64)
}

// gather returns the bits of a mask as a number.
func gather(x, mask uint64) (n uint64) {
	for at := 0; mask != 0; {
		skip := bits.TrailingZeros64(mask)
		mask, x = mask>>skip, x>>skip
		run := bits.TrailingZeros64(^mask)
		n |= x & (1<<run - 1) << at
		mask, x, at = mask>>run, x>>run, at+run
	}
	return n
}

// scatter is the inverse of gather.
func scatter(n, mask uint64) (x uint64) {
	for at := 0; mask != 0; {
		skip := bits.TrailingZeros64(mask)
		mask, at = mask>>skip, at+skip
		run := bits.TrailingZeros64(^mask)
		x |= n & (1<<run - 1) << at
		mask, n, at = mask>>run, n>>run, at+run
	}
	return x
}

// row returns the bits of an id.
func (m wide) row(id wide) wide {
	low := bits.OnesCount64(m.low)
	h, l := gather(id.high, m.high), gather(id.low, m.low)
	return wide{h >> (64 - low), h<<low | l}
}

func encodeIDs(dst []byte, ids []byte) []byte {
	first := wideOf((*[idSize]byte)(ids))
	var mask wide
	for i := 0; i < len(ids); i += idSize {
		id := wideOf((*[idSize]byte)(ids[i:]))
		mask.high, mask.low = mask.high|(id.high^first.high), mask.low|(id.low^first.low)
	}
	bytes := mask.id()
	w := bitWriter{dst: append(dst, bytes[:]...)}
	high, low := mask.widths()
	for i := 0; i < len(ids); i += idSize {
		r := mask.row(wideOf((*[idSize]byte)(ids[i:])))
		w.put(r.high, high)
		w.put(r.low, low)
	}
	return w.finish()
}

// readIDs reads a block of so many ids.
func readIDs(b, first []byte, count int) (d idBlock, err error) {
	if len(b) < idSize || len(first) != idSize {
		return d, ErrDamaged
	}
	d = idBlock{first: wideOf((*[idSize]byte)(first)), mask: wideOf((*[idSize]byte)(b)), count: count, rows: b[idSize:]}
	d.high, d.low = d.mask.widths()
	if len(d.rows) != bytesOf(count, d.high+d.low) {
		return d, ErrDamaged
	}
	return d, nil
}

func (d *idBlock) row(i int) wide {
	at := i * (d.high + d.low)
	return wide{readBits(d.rows, at, d.high), readBits(d.rows, at+d.high, d.low)}
}

func (d *idBlock) at(i int) (id [idSize]byte) {
	r, low := d.row(i), bits.OnesCount64(d.mask.low)
	h := r.low>>low | r.high<<(64-low)
	return wide{
		d.first.high&^d.mask.high | scatter(h, d.mask.high),
		d.first.low&^d.mask.low | scatter(r.low, d.mask.low),
	}.id()
}

// search returns the number of ids that are less, and whether there is this id.
func (d *idBlock) search(key *[idSize]byte) (n int, ok bool) {
	id, known, after := wideOf(key), true, false
	// Of the bits that all ids share, the highest in which this one differs decides among those with
	// the same bits above it.
	if x := (id.high ^ d.first.high) &^ d.mask.high; x != 0 {
		bit := uint64(1) << (bits.Len64(x) - 1)
		if known, after = false, id.high&bit != 0; after {
			id = wide{id.high | (bit - 1), ^uint64(0)}
		} else {
			id = wide{id.high &^ (bit - 1), 0}
		}
	} else if x := (id.low ^ d.first.low) &^ d.mask.low; x != 0 {
		bit := uint64(1) << (bits.Len64(x) - 1)
		if known, after = false, id.low&bit != 0; after {
			id.low |= bit - 1
		} else {
			id.low &^= bit - 1
		}
	}
	row := d.mask.row(id)
	low, high := 0, d.count
	for low < high {
		mid := (low + high) / 2
		if at := d.row(mid); at.less(row) || after && at == row {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, known && low < d.count && d.row(low) == row
}
