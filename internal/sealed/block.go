package sealed

import (
	"bytes"
	"encoding/binary"
	"sort"

	"github.com/lineage-store/lineage/internal/varint"
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
//
// The last three are interleaved, see interleave.go.

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

	sizes [3][]int // of each entry in keys, values and ids
	other []byte
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
	ids := 0
	for _, r := range refs {
		ids += width(int(r.kind))
	}
	for i, n := range [...]int{len(key) - shared, len(value), ids} {
		c.sizes[i] = append(c.sizes[i], n)
	}
	c.last = append(c.last[:0], key...)
	c.count++
	c.whole += len(key)
}

// finish appends the block and begins another.
func (c *columns) finish(dst []byte) []byte {
	for i, b := range [...][]byte{c.keys, c.values, c.ids} {
		c.other = append(c.other[:0], b...)
		interleave(b, c.other, c.sizes[i])
		c.sizes[i] = c.sizes[i][:0]
	}
	for _, b := range [...]*[]byte{&c.numbers, &c.keys, &c.values, &c.ids} {
		dst = append(binary.AppendUvarint(dst, uint64(len(*b))), *b...)
		*b = (*b)[:0]
	}
	c.last, c.count, c.whole = c.last[:0], 0, 0
	return dst
}

// decodeBlock decodes a block of so many entries.
func decodeBlock(b []byte, count int, width func(kind int) int) (*block, error) {
	v := varint.Reader{Rest: b}
	var column [4][]byte
	for i := range column {
		column[i] = v.Take(v.Next())
	}
	if v.Bad || len(v.Rest) > 0 || count < 1 || count > len(column[0])/4 {
		return nil, ErrDamaged
	}
	d := &block{values: make([]byte, len(column[2])), ends: make([]ends, 0, count)}
	shared, sizes, err := d.numbers(column, count, width)
	if err != nil {
		return nil, err
	}
	keys, ids := make([]byte, len(column[1])), make([]byte, len(column[3]))
	for i, to := range [...][]byte{keys, d.values, ids} {
		separate(to, column[i+1], sizes[i])
	}
	for i := range d.refs {
		w := width(int(d.refs[i].kind))
		d.refs[i].n, ids = readNumber(ids[:w]), ids[w:]
	}
	return d, d.join(keys, shared, sizes[0])
}

// numbers decodes the numbers of the entries, and all ends but those of keys. It returns how many
// bytes keys share, and the sizes of each entry in the other columns, which add up.
func (d *block) numbers(column [4][]byte, count int, width func(kind int) int) (shared []int, sizes [3][]int, err error) {
	numbers := varint.Reader{Rest: column[0]}
	left := [...]int{len(column[1]), len(column[2]), len(column[3])}
	shared = make([]int, 0, count)
	for range count {
		shared = append(shared, numbers.Size(maxBlock))
		differ, value, refs := numbers.Size(left[0]), numbers.Size(left[1]), numbers.Size(left[2])
		ids := 0
		for rest := value; refs > 0 && !numbers.Bad; refs-- {
			gap, kind := numbers.Size(rest), numbers.Size(MaxKinds-1)
			w := width(kind)
			if ids += w; w == 0 || ids > left[2] {
				return nil, sizes, ErrDamaged
			}
			rest -= gap
			d.refs = append(d.refs, reference{gap: uint32(gap), kind: uint8(kind)})
		}
		for i, n := range [...]int{differ, value, ids} {
			sizes[i] = append(sizes[i], n)
			left[i] -= n
		}
		d.ends = append(d.ends, ends{value: uint32(len(column[2]) - left[1]), refs: uint32(len(d.refs))})
	}
	if numbers.Bad || len(numbers.Rest)+left[0]+left[1]+left[2] > 0 {
		return nil, sizes, ErrDamaged
	}
	return shared, sizes, nil
}

// join sets the stored keys from what they do not share with the ones before.
func (d *block) join(keys []byte, shared, differ []int) error {
	d.keys = make([]byte, 0, 2*len(keys))
	start := 0
	for i := range shared {
		next := len(d.keys)
		if shared[i] > next-start || len(shared) > 1 && next+shared[i]+differ[i] > maxKeys {
			return ErrDamaged
		}
		d.keys = append(append(d.keys, d.keys[start:start+shared[i]]...), keys[:differ[i]]...)
		if start+shared[i] < next && differ[i] > 0 {
			d.keys[next+shared[i]] += d.keys[start+shared[i]]
		}
		if next > 0 && bytes.Compare(d.keys[start:next], d.keys[next:]) >= 0 {
			return ErrDamaged
		}
		start, keys = next, keys[differ[i]:]
		d.ends[i].key = uint32(len(d.keys))
	}
	return nil
}
