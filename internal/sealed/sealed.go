// Package sealed is an immutable ordered table of short keys and values. An id that occurs in many
// entries is stored once: keys and values have its number instead. Entries are in blocks of columns, in
// as many bits as their differences need, and each is read where it lies: only texts are compressed.
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
	// Parts describes the keys that begin with a byte: what follows that byte, part by part. The rest of a key, after the last
	// part, is stored as it is. Only the last part may have Tail set.
	Parts(first byte) []KeyPart
	// Fields appends the fields of a value, in order. Only the size of the table depends on it.
	Fields(dst []Field, key, value []byte) []Field
	// Uses is the first byte of the keys of uses, or 0 for none, and the kind of the runs in their values. With uses, no key begins
	// with a byte 0xff, or with that byte, 16 bytes and 8 zero bytes: see uses.go.
	Uses() (first byte, kind int)
}

// KeyPart is a part of a key.
type KeyPart struct {
	Size int  // bytes that are stored as they are; 0 for an id
	Text bool // of these bytes: a text, at most 120 bytes, that may end with zeros
	Kind int  // of the id
	Tail bool // of an id: its last four bytes come first
}

// Form is how a field of a value is written.
type Form uint8

const (
	Rest     Form = iota // what is left of the value
	Number               // a varint
	Time                 // a varint, zigzag
	ID                   // an id of a kind, or zero
	Ref                  // a varint and, unless it is 0, an id of a kind
	Bytes                // so many bytes
	Text                 // its length, a varint, and bytes
	Optional             // 0, or a length plus 1, and bytes
	forms
)

// Field is a field of a value.
type Field struct {
	Form Form
	Kind int // of the id, for ID and Ref
	Size int // for Bytes: 1 to 255
}

// MaxKinds limits the kinds of ids.
const MaxKinds = 4

const (
	idSize   = 16
	tailSize = 4
)

// ErrDamaged is returned if a table is damaged.
var ErrDamaged = errors.New("sealed table is damaged")

// Location is where a table has bytes: in an extent, of which the owner keeps the bytes.
type Location struct {
	Extent         uint32
	Offset, Length int
}

// Load returns the bytes at a location. They are not changed, and valid until the method of the Reader returns, or until the
// Writer emits the next extent.
type Load func(Location) ([]byte, error)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	// blockSize is about the size at which a block ends, before its texts are compressed. Up to fewCount
	// entries may have four times that size: large ones have much in common.
	blockSize = 4 << 10
	fewCount  = 48
	// blockIDs is the number of ids in a block of a dictionary.
	blockIDs = 128
	// extentSize is the size at which an extent ends.
	extentSize = 512 << 10
	// maxCount limits the number of entries of a block.
	maxCount = 512
	// maxKeys limits what the first stored key of a block shares with the one before it.
	maxKeys = 64 << 10
	// maxBlock limits the size of a heap.
	maxBlock = 1 << 30
)
