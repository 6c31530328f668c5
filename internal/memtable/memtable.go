// Package memtable keeps an ordered map of bytes in memory, for one writer and any
// number of readers, who each see it as it was at a moment and wait for nothing.
//
// It is a skip list whose nodes name each other by number, in memory that has no
// pointers: however much is in it, the garbage collector has nothing to look at.
// What is set again is a node of its own once somebody may read the old value, so a
// moment is a number, and remembering one costs nothing.
package memtable

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"sync/atomic"
)

// Table is a map. It only grows: a deletion is an entry too.
type Table struct {
	now   uint32 // the moment that is being written
	count int
	size  int64
	seed  uint64

	nodes  chunks[[nodesInChunk]node]
	towers chunks[[linksInChunk]atomic.Uint32]
	data   chunks[[]byte]
	used   struct{ nodes, links, data uint32 } // of the last chunk, for data

	// Where entries were put last, for each of some first bytes of keys: keys that
	// begin alike tend to come one after the other.
	fingers [16]finger
}

// A finger has the last node before a place on each level.
type finger [maxHeight]uint32

// node is an entry. The list is in the order of keys and, of one key, from the
// latest moment to the first. All but the links is written before the node can be
// found, and the value again while no reader's moment has come.
type node struct {
	prefix uint64 // the key's first bytes, for comparing
	key    place
	value  place
	moment uint32
	tower  uint32        // where its links above the lowest level are
	next   atomic.Uint32 // on the lowest level; 0 at the end
}

// place is where bytes are, or that there are none.
type place struct{ chunk, offset, length uint32 }

// deleted is the length of what is not a value.
const deleted = math.MaxUint32

const (
	nodesInChunk = 1 << 8
	linksInChunk = 1 << 8
	leastChunk   = 4 << 10
	mostChunk    = 256 << 10
	maxHeight    = 12 // a fourth of the nodes of each level are on the next
	nodeSize     = 48
)

// chunks is memory that grows and never moves. Readers may look at what was there
// when they learned where.
type chunks[T any] struct{ list atomic.Pointer[[]*T] }

func (c *chunks[T]) at(i uint32) *T { return (*c.list.Load())[i] }

func (c *chunks[T]) len() int {
	if list := c.list.Load(); list != nil {
		return len(*list)
	}
	return 0
}

func (c *chunks[T]) add(t *T) {
	var list []*T
	if old := c.list.Load(); old != nil {
		list = *old
	}
	list = append(list, t)
	c.list.Store(&list)
}

// New returns an empty table.
func New() *Table {
	t := &Table{now: 1, seed: 1}
	t.newNode(maxHeight) // the head, before everything
	t.size = 0
	return t
}

// Len returns how many entries the table has, those of older moments included.
func (t *Table) Len() int { return t.count }

// Bytes returns how much memory the entries take.
func (t *Table) Bytes() int64 { return t.size }

// Seal returns the moment that has been written. What is set from here on does not
// show in it. Only the writer may call it.
func (t *Table) Seal() Moment {
	m := Moment{t, t.now}
	t.now++
	return m
}

// Latest returns the moment that is being written: what it shows changes. It may not
// be read while the writer writes.
func (t *Table) Latest() Moment { return Moment{t, t.now} }

// Set gives a key a value; a nil one is a deletion. Key and value are copied. Only
// the writer may call it.
func (t *Table) Set(key, value []byte) {
	prefix := Prefix(key)
	f := &t.fingers[0]
	if len(key) > 0 {
		f = &t.fingers[key[0]%byte(len(t.fingers))]
	}
	t.seek(f, prefix, key)
	if next := t.next(f[0], 0); next != 0 {
		n := t.node(next)
		if n.moment == t.now && t.has(n, prefix, key) {
			n.value = t.keep(value)
			return
		}
	}
	height := t.height()
	id := t.newNode(height)
	n := t.node(id)
	n.prefix, n.moment = prefix, t.now
	n.key, n.value = t.keep(key), t.keep(value)
	t.count++
	t.size += nodeSize
	for level := range height {
		before := t.walk(f[level], level, prefix, key) // seek left out some levels
		t.link(id, level).Store(t.next(before, level))
		t.link(before, level).Store(id)
		f[level] = id
	}
}

// seek moves a finger to before the first entry of a key, on the levels below the
// lowest on which it points at the right place already.
func (t *Table) seek(f *finger, prefix uint64, key []byte) {
	level := 0
	for ; level < maxHeight-1; level++ {
		if before := f[level]; before == 0 || t.less(before, prefix, key) {
			if next := t.next(before, level); next == 0 || !t.less(next, prefix, key) {
				break
			}
		}
	}
	before := f[level]
	if before != 0 && !t.less(before, prefix, key) {
		before = 0
	}
	for ; level >= 0; level-- {
		before = t.walk(before, level, prefix, key)
		f[level] = before
	}
}

// walk returns the last node on a level that comes before all entries of a key. The
// node to start at does.
func (t *Table) walk(before uint32, level int, prefix uint64, key []byte) uint32 {
	for {
		next := t.next(before, level)
		if next == 0 || !t.less(next, prefix, key) {
			return before
		}
		before = next
	}
}

// less reports whether a node's key is less than another.
func (t *Table) less(id uint32, prefix uint64, key []byte) bool {
	n := t.node(id)
	if n.prefix != prefix {
		return n.prefix < prefix
	}
	return bytes.Compare(t.bytes(n.key), key) < 0
}

// has reports whether a node's key is another.
func (t *Table) has(n *node, prefix uint64, key []byte) bool {
	return n.prefix == prefix && bytes.Equal(t.bytes(n.key), key)
}

// Prefix returns the first bytes of a key as a number. Of keys whose numbers differ
// the less has the less.
func Prefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// height draws on how many levels a node is.
func (t *Table) height() int {
	t.seed ^= t.seed << 13
	t.seed ^= t.seed >> 7
	t.seed ^= t.seed << 17
	return min(1+bits.TrailingZeros64(t.seed)/2, maxHeight)
}

func (t *Table) newNode(height int) uint32 {
	id := t.used.nodes
	t.used.nodes++
	if id/nodesInChunk == uint32(t.nodes.len()) {
		t.nodes.add(new([nodesInChunk]node))
	}
	if height == 1 {
		return id
	}
	links := uint32(height - 1)
	if room := linksInChunk - t.used.links%linksInChunk; room < links {
		t.used.links += room
	}
	if t.used.links/linksInChunk == uint32(t.towers.len()) {
		t.towers.add(new([linksInChunk]atomic.Uint32))
	}
	t.node(id).tower = t.used.links
	t.used.links += links
	t.size += int64(4 * links)
	return id
}

func (t *Table) node(id uint32) *node { return &t.nodes.at(id / nodesInChunk)[id%nodesInChunk] }

func (t *Table) link(id uint32, level int) *atomic.Uint32 {
	n := t.node(id)
	if level == 0 {
		return &n.next
	}
	at := n.tower + uint32(level-1)
	return &t.towers.at(at / linksInChunk)[at%linksInChunk]
}

func (t *Table) next(id uint32, level int) uint32 { return t.link(id, level).Load() }

// keep copies bytes to where they stay.
func (t *Table) keep(b []byte) place {
	if b == nil {
		return place{length: deleted}
	}
	if len(b) == 0 {
		return place{}
	}
	chunks := t.data.len()
	if chunks == 0 || int(t.used.data)+len(b) > len(*t.data.at(uint32(chunks - 1))) {
		chunk := make([]byte, max(min(leastChunk<<min(chunks, 16), mostChunk), len(b)))
		t.data.add(&chunk)
		t.used.data, chunks = 0, chunks+1
	}
	p := place{chunk: uint32(chunks - 1), offset: t.used.data, length: uint32(len(b))}
	copy(t.bytes(p), b)
	t.used.data += p.length
	t.size += int64(len(b))
	return p
}

// bytes returns what stands at a place, nil for a deletion.
func (t *Table) bytes(p place) []byte {
	switch p.length {
	case deleted:
		return nil
	case 0:
		return []byte{}
	}
	end := p.offset + p.length
	return (*t.data.at(p.chunk))[p.offset:end:end]
}
