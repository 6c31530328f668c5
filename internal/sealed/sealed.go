// Package sealed is an immutable ordered table of short keys and values, compressed in blocks that
// are read one by one. An id that occurs in many entries is stored once: keys and values have its
// number instead.
//
// A table does not depend on what it stores. Its owner describes with a Shape where keys and values
// have ids. Numbers sort as the ids do, so stored keys sort as the keys: see stored keys in keys.go.
package sealed

import (
	"errors"
	"hash/crc32"
)

// Entry is a key and its value.
type Entry struct{ Key, Value []byte }

// Shape describes where entries have ids. Parts and Owners must not change: they decide the order
// of stored keys.
type Shape interface {
	// Owners are the first bytes of the keys that are followed by an id of each kind: these keys
	// define the ids of the kind. At most MaxKinds.
	Owners() []byte
	// Parts is the layout of keys with a first byte after that byte. What follows the last part
	// is stored as it is. Only the last part may be of the form Tail.
	Parts(first byte) []Part
	// References appends the ids in a value, in order and without overlaps. Only the size of the
	// table depends on it.
	References(dst []Reference, key, value []byte) []Reference
}

// Part is a part of a key.
type Part struct {
	Size int  // bytes that are stored as they are; 0 for an id
	Kind int  // of the id
	Tail bool // of an id: its last four bytes come first
}

// Reference is an id in a value.
type Reference struct{ Offset, Kind int }

// MaxKinds limits the kinds of ids.
const MaxKinds = 8

const (
	idSize   = 16
	tailSize = 4
)

// ErrDamaged is returned if a table is damaged.
var ErrDamaged = errors.New("sealed table is damaged")

// Place is where a table has bytes: in an extent, of which the owner keeps the bytes.
type Place struct {
	Extent         uint32
	Offset, Length int
}

// Load returns the bytes at a place. The caller does not change them.
type Load func(Place) ([]byte, error)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	// blockSize limits the size of the keys of a block before compression, and of its values. The
	// values of up to fewCount entries may have four times that size: large ones have much in common.
	blockSize = 8 << 10
	fewCount  = 32
	// blockIDs is the number of ids in a block of a dictionary.
	blockIDs = 256
	// extentSize is the size at which an extent ends.
	extentSize = 128 << 10
	// maxCount limits the number of entries of a block.
	maxCount = 512
	// maxKeys limits the size of the stored keys of a block with several entries.
	maxKeys = 64 << 10
	// maxBlock limits the size of a block before compression.
	maxBlock = 1 << 30
)
