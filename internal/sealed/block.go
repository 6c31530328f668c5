package sealed

import (
	"bytes"
	"encoding/binary"
	"sort"
)

// A block of entries has four columns, each after its length: numbers, keys, values, ids.
//
//	numbers  of each entry varints: bytes that the stored key shares with the one before, its other
//	         bytes, bytes of the value without ids, number of ids; of each id: bytes of the value
//	         since the one before, kind
//	keys     the other bytes of the stored keys; the first one as the difference to the byte of the
//	         key before at this place, if it has one
//	values   the values without the ids
//	ids      the numbers of the ids, in as many bytes as the dictionaries need

// reference is an id in the value of a block's entry.
type reference struct {
	gap  uint32 // bytes of the value before it, since the reference before
	kind uint8
	n    uint64
}

// block is decoded. The slices of an entry end at its ends.
type block struct {
	keys, values []byte
	refs         []reference
	ends         []ends
}

type ends struct{ key, value, refs uint32 }

func (b *block) entry(i int) (key, value []byte, refs []reference) {
	var from ends
	if i > 0 {
		from = b.ends[i-1]
	}
	to := b.ends[i]
	return b.keys[from.key:to.key:to.key], b.values[from.value:to.value:to.value], b.refs[from.refs:to.refs:to.refs]
}

func (b *block) key(i int) []byte {
	key, _, _ := b.entry(i)
	return key
}

// search returns the number of entries with lesser stored keys.
func (b *block) search(key []byte) int {
	return sort.Search(len(b.ends), func(i int) bool { return bytes.Compare(b.key(i), key) >= 0 })
}

// size is the memory of a decoded block.
func (b *block) size() int {
	return len(b.keys) + len(b.values) + 16*len(b.refs) + 12*len(b.ends) + 100
}

// columns encodes a block.
type columns struct {
	numbers, keys, values, ids []byte

	last  []byte // stored key
	count int
	whole int // size of the stored keys
}

// fits reports whether a block has space for another entry. The first one always fits.
func (c *columns) fits(key, value []byte) bool {
	values := blockSize
	if c.count < fewCount {
		values = 4 * blockSize
	}
	return c.count == 0 || c.count < maxCount && c.whole+len(key) <= maxKeys && len(c.keys)+len(c.ids) <= blockSize && len(c.values)+len(value) <= values
}

// add adds an entry with a stored key. The references are in order and within the value.
func (c *columns) add(key, value []byte, refs []reference, width func(kind int) int) {
	shared := 0
	for shared < len(key) && shared < len(c.last) && key[shared] == c.last[shared] {
		shared++
	}
	c.numbers = binary.AppendUvarint(c.numbers, uint64(shared))
	c.numbers = binary.AppendUvarint(c.numbers, uint64(len(key)-shared))
	c.numbers = binary.AppendUvarint(c.numbers, uint64(len(value)))
	c.numbers = binary.AppendUvarint(c.numbers, uint64(len(refs)))
	for _, r := range refs {
		c.numbers = append(binary.AppendUvarint(c.numbers, uint64(r.gap)), r.kind)
		c.ids = appendNumber(c.ids, r.n, width(int(r.kind)))
	}
	start := len(c.keys)
	c.keys = append(c.keys, key[shared:]...)
	if shared < len(c.last) && shared < len(key) {
		c.keys[start] -= c.last[shared]
	}
	c.values = append(c.values, value...)
	c.last = append(c.last[:0], key...)
	c.count++
	c.whole += len(key)
}

// finish appends the block and begins another.
func (c *columns) finish(dst []byte) []byte {
	for _, b := range [...]*[]byte{&c.numbers, &c.keys, &c.values, &c.ids} {
		dst = append(binary.AppendUvarint(dst, uint64(len(*b))), *b...)
		*b = (*b)[:0]
	}
	c.last, c.count, c.whole = c.last[:0], 0, 0
	return dst
}

// decodeBlock decodes a block of so many entries.
func decodeBlock(b []byte, count int, width func(kind int) int) (*block, error) {
	v := varints{rest: b}
	var column [4][]byte
	for i := range column {
		n := v.size(len(v.rest))
		n = min(n, len(v.rest))
		column[i], v.rest = v.rest[:n], v.rest[n:]
	}
	if v.bad || len(v.rest) > 0 || count < 1 || count > len(column[0])/4 {
		return nil, ErrDamaged
	}
	numbers, keys, ids := varints{rest: column[0]}, column[1], column[3]
	d := &block{values: column[2], ends: make([]ends, 0, count), keys: make([]byte, 0, 2*len(keys))}
	start, values := 0, 0
	for range count {
		shared, differ := numbers.size(len(d.keys)-start), numbers.size(len(keys))
		value, refs := numbers.size(len(d.values)-values), numbers.size(len(ids))
		if numbers.bad || count > 1 && len(d.keys)+shared+differ > maxKeys {
			return nil, ErrDamaged
		}
		next := len(d.keys)
		d.keys = append(append(d.keys, d.keys[start:start+shared]...), keys[:differ]...)
		if start+shared < next && differ > 0 {
			d.keys[next+shared] += d.keys[start+shared]
		}
		if next > 0 && bytes.Compare(d.keys[start:next], d.keys[next:]) >= 0 {
			return nil, ErrDamaged
		}
		start, keys, values = next, keys[differ:], values+value
		for left := value; refs > 0; refs-- {
			gap, kind := numbers.size(left), numbers.size(MaxKinds-1)
			w := width(kind)
			if numbers.bad || w == 0 || w > len(ids) {
				return nil, ErrDamaged
			}
			left -= gap
			d.refs = append(d.refs, reference{uint32(gap), uint8(kind), readNumber(ids[:w])})
			ids = ids[w:]
		}
		d.ends = append(d.ends, ends{uint32(len(d.keys)), uint32(values), uint32(len(d.refs))})
	}
	if len(numbers.rest)+len(keys)+len(ids) > 0 || values != len(d.values) {
		return nil, ErrDamaged
	}
	return d, nil
}
