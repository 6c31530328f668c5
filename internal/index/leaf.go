package index

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A leaf has the entries of one range of keys, front-coded. It is a value in bbolt
// whose key is the lower bound of the range:
//
//	0  CRC-32C of the lower bound and of everything after the checksum
//	4  length of the upper bound plus 1, or 0 for none: a varint; the bound
//	   then, for each entry in order:
//	   number of bytes shared with the key before (as many as are equal),
//	   number of different bytes, length of the value plus 1, or 0 for a key
//	   that is deleted from the sealed table: varints; the different bytes; the
//	   value
//
// The bounds detect a leaf under the wrong key, and a search in the wrong leaf.
const (
	// leafTarget is the size at which a leaf is split.
	leafTarget = 1 << 10
	leafMin    = 5
	// leafShare is the share of a leaf and its overhead in a page, so that pages are
	// full.
	leafShare = 1<<10 - pageHeader/4
)

type leaf struct {
	low, high []byte // high is nil without an upper bound
	entries   []byte
}

func decodeLeaf(low, b []byte) (leaf, error) {
	if len(b) < leafMin {
		return leaf{}, errLeaf
	}
	if crc32.Update(crc32.Update(0, castagnoli, low), castagnoli, b[4:]) != binary.LittleEndian.Uint32(b) {
		return leaf{}, errLeaf
	}
	l := leaf{low: low}
	n, w := binary.Uvarint(b[4:])
	rest := b[4+max(w, 0):]
	if w <= 0 || n > uint64(len(rest))+1 {
		return leaf{}, errLeaf
	}
	if n > 0 {
		l.high, rest = rest[:n-1:n-1], rest[n-1:]
	}
	l.entries = rest
	return l, nil
}

// covers reports whether the key is in the range of the leaf.
func (l leaf) covers(key []byte) bool {
	return bytes.Compare(l.low, key) <= 0 && (l.high == nil || bytes.Compare(key, l.high) < 0)
}

// cursor iterates over the entries of a leaf.
type cursor struct {
	rest  []byte
	key   []byte // reused
	value []byte // shares the leaf's memory; nil if the key is deleted
	err   error
}

func (l leaf) cursor() cursor { return cursor{rest: l.entries} }

// next steps to the next entry and reports whether there is one.
func (c *cursor) next() bool {
	if len(c.rest) == 0 {
		return false
	}
	shared, differ, value, rest, ok := splitEntry(c.rest, len(c.key))
	if !ok {
		c.rest, c.err = nil, errLeaf
		return false
	}
	c.key = append(c.key[:shared], differ...)
	c.value, c.rest = value, rest
	return true
}

// splitEntry splits off the first entry. before is the length of the key before it.
func splitEntry(b []byte, before int) (shared int, differ, value, rest []byte, ok bool) {
	s, n1 := binary.Uvarint(b)
	if n1 <= 0 {
		return
	}
	d, n2 := binary.Uvarint(b[n1:])
	if n2 <= 0 {
		return
	}
	size, n3 := binary.Uvarint(b[n1+n2:])
	if n3 <= 0 {
		return
	}
	rest = b[n1+n2+n3:]
	if s > uint64(before) || d > uint64(len(rest)) {
		return
	}
	differ, rest = rest[:d], rest[d:]
	if size == 0 {
		return int(s), differ, nil, rest, true
	}
	if size--; size > uint64(len(rest)) {
		return
	}
	return int(s), differ, rest[:size:size], rest[size:], true
}

// get returns the value of a key, sharing the leaf's memory. It is nil if the key is deleted.
func (l leaf) get(key []byte) ([]byte, bool, error) {
	if !l.covers(key) {
		return nil, false, errBounds
	}
	// All entries so far are less than the key; the last one has this length and
	// shares this many bytes with the key.
	length, same := 0, 0
	for rest := l.entries; len(rest) > 0; {
		shared, differ, value, after, ok := splitEntry(rest, length)
		if !ok {
			return nil, false, errLeaf
		}
		if shared < same {
			return nil, false, nil // it is greater at a byte where the one before was equal
		}
		if shared == same {
			n := 0
			for n < len(differ) && same+n < len(key) && differ[n] == key[same+n] {
				n++
			}
			switch same += n; {
			case n == len(differ) && same == len(key):
				return value, true, nil
			case n < len(differ) && (same == len(key) || differ[n] > key[same]):
				return nil, false, nil
			}
		}
		length, rest = shared+len(differ), after
	}
	return nil, false, nil
}

// list returns copies of the entries with from <= key < to; a nil to has no end.
func (l leaf) list(from, to []byte) (out []Entry, err error) {
	var mem []byte
	c := l.cursor()
	for c.next() && (to == nil || bytes.Compare(c.key, to) < 0) {
		if bytes.Compare(c.key, from) < 0 {
			continue
		}
		if mem == nil && to == nil {
			mem = make([]byte, 0, len(l.entries)+leafTarget) // keys are longer than their stored parts
		}
		start := len(mem)
		mem = append(append(mem, c.key...), c.value...)
		kv := mem[start:len(mem):len(mem)]
		e := Entry{Key: kv[:len(c.key):len(c.key)], Value: kv[len(c.key):]}
		if c.value == nil {
			e.Value = nil
		}
		out = append(out, e)
	}
	return out, c.err
}

// before returns a copy of the last entry with a key less than to, or of the last
// entry for nil.
func (l leaf) before(to []byte) (last Entry, ok bool, err error) {
	var key, value []byte
	c := l.cursor()
	for c.next() && (to == nil || bytes.Compare(c.key, to) < 0) {
		key, value, ok = append(key[:0], c.key...), c.value, true
	}
	if !ok || c.err != nil {
		return Entry{}, false, c.err
	}
	return Entry{Key: key, Value: bytes.Clone(value)}, true, nil
}

// leafWriter encodes ordered entries into leaves.
type leafWriter struct {
	entries []byte
	last    []byte
}

func (w *leafWriter) add(key, value []byte) {
	shared := sharedBytes(w.last, key)
	w.entries = binary.AppendUvarint(w.entries, uint64(shared))
	w.entries = binary.AppendUvarint(w.entries, uint64(len(key)-shared))
	if value == nil {
		w.entries = append(w.entries, 0)
	} else {
		w.entries = binary.AppendUvarint(w.entries, uint64(len(value))+1)
	}
	w.entries = append(append(w.entries, key[shared:]...), value...)
	w.last = append(w.last[:0], key...)
}

// fits reports whether a leaf with this lower bound has space for another entry in
// its share of a page. The first entry always fits.
func (w *leafWriter) fits(low, key, value []byte) bool {
	around := elementSize + 1 + len(low) + leafMin + len(key)
	return len(w.entries) == 0 || around+len(w.entries)+entrySize(w.last, key, value) <= leafShare
}

// entrySize is the approximate size of an entry after one with the key before.
func entrySize(before, key, value []byte) int {
	return 3 + len(key) - sharedBytes(before, key) + len(value)
}

// sharedBytes returns the length of the common prefix.
func sharedBytes(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// finish returns the leaf in new memory and resets the writer.
func (w *leafWriter) finish(low, high []byte) []byte {
	b := make([]byte, 4, 4+binary.MaxVarintLen32+len(high)+len(w.entries))
	if high == nil {
		b = append(b, 0)
	} else {
		b = append(binary.AppendUvarint(b, uint64(len(high))+1), high...)
	}
	b = append(b, w.entries...)
	binary.LittleEndian.PutUint32(b, crc32.Update(crc32.Update(0, castagnoli, low), castagnoli, b[4:]))
	w.entries, w.last = w.entries[:0], w.last[:0]
	return b
}
