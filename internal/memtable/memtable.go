// Package memtable is an ordered map of bytes in memory, for one writer and any
// number of readers. Each reader sees the state at a moment and never blocks.
//
// It is a skip list whose nodes refer to each other by number, in memory without
// pointers, so that the garbage collector has nothing to scan. Setting a key again
// adds a node if a reader may see the old value; a moment is therefore just a
// number, and costs nothing.
package memtable

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"sync/atomic"
)

// Table is the map. It only grows: a deletion is an entry too.
type Table struct {
	now   uint32 // the current moment
	count int
	size  int64
	seed  uint64

	nodes  chunks[[nodesInChunk]node]
	towers chunks[[linksInChunk]atomic.Uint32]
	data   chunks[[]byte]
	used   struct{ nodes, links, data uint32 } // of the last chunk, for data

	// Positions of the last insertions, by the first byte of the key: keys with the
	// same first byte often come in order.
	fingers [16]finger
}

// A finger has the last node before a position on each level.
type finger [maxHeight]uint32

// node is an entry. The list is ordered by key, and for one key from the latest moment
// to the first. All fields but the links are written before the node is reachable; the
// value may be overwritten while no reader can see the moment.
type node struct {
	prefix uint64 // the key's first bytes, for comparing
	key    location
	value  location
	moment uint32
	tower  uint32        // position of its links above the lowest level
	next   atomic.Uint32 // on the lowest level; 0 at the end
}

// location is the position of bytes, or marks a deletion.
type location struct{ chunk, offset, length uint32 }

// deleted is the length that marks a deletion.
const deleted = math.MaxUint32

const (
	nodesInChunk = 1 << 8
	linksInChunk = 1 << 8
	minChunk     = 4 << 10
	maxChunk     = 256 << 10
	maxHeight    = 12 // a fourth of the nodes of each level are on the next
	nodeSize     = 48
)

// chunks is memory that grows and never moves. Readers may access everything that
// existed when they got its position.
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

// Len returns the number of entries, including those of older moments.
func (t *Table) Len() int { return t.count }

// Bytes returns the memory used by entries.
func (t *Table) Bytes() int64 { return t.size }

// Set sets the value of a key; nil is a deletion. Key and value are copied. Only
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
			n.value = t.store(value)
			return
		}
	}
	height := t.height()
	id := t.newNode(height)
	n := t.node(id)
	n.prefix, n.moment = prefix, t.now
	n.key, n.value = t.store(key), t.store(value)
	t.count++
	t.size += nodeSize
	for level := range height {
		before := t.walk(f[level], level, prefix, key) // seek left out some levels
		t.link(id, level).Store(t.next(before, level))
		t.link(before, level).Store(id)
		f[level] = id
	}
}

// seek moves a finger to before the first entry of a key. Levels above the lowest
// one that is already right are left alone.
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

// walk returns the last node on a level before all entries of a key. It starts at
// such a node.
func (t *Table) walk(before uint32, level int, prefix uint64, key []byte) uint32 {
	for {
		next := t.next(before, level)
		if next == 0 || !t.less(next, prefix, key) {
			return before
		}
		before = next
	}
}

// less reports whether a node's key is less than key.
func (t *Table) less(id uint32, prefix uint64, key []byte) bool {
	n := t.node(id)
	if n.prefix != prefix {
		return n.prefix < prefix
	}
	return bytes.Compare(t.bytes(n.key), key) < 0
}

// has reports whether a node's key equals key.
func (t *Table) has(n *node, prefix uint64, key []byte) bool {
	return n.prefix == prefix && bytes.Equal(t.bytes(n.key), key)
}

// Prefix returns the first bytes of a key as a number. If two numbers differ, they
// are ordered like the keys.
func Prefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// height returns a random number of levels for a node.
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

// store copies bytes into a chunk.
func (t *Table) store(b []byte) location {
	if b == nil {
		return location{length: deleted}
	}
	if len(b) == 0 {
		return location{}
	}
	chunks := t.data.len()
	if chunks == 0 || int(t.used.data)+len(b) > len(*t.data.at(uint32(chunks - 1))) {
		chunk := make([]byte, max(min(minChunk<<min(chunks, 16), maxChunk), len(b)))
		t.data.add(&chunk)
		t.used.data, chunks = 0, chunks+1
	}
	p := location{chunk: uint32(chunks - 1), offset: t.used.data, length: uint32(len(b))}
	copy(t.bytes(p), b)
	t.used.data += p.length
	t.size += int64(len(b))
	return p
}

// bytes returns the bytes at a location, or nil for a deletion.
func (t *Table) bytes(p location) []byte {
	switch p.length {
	case deleted:
		return nil
	case 0:
		return []byte{}
	}
	end := p.offset + p.length
	return (*t.data.at(p.chunk))[p.offset:end:end]
}
