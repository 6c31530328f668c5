package index

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/lineage-store/lineage/lineage/backend"
)

// Entry is a key and its value. Neither may be changed.
type Entry struct {
	Key, Value []byte // a nil Value in a batch deletes the key
}

// State is the position in the journal that an index accounts for.
type State struct {
	Store   [16]byte
	Number  uint64 // of the last commit
	ID      uint64 // of that commit and of the earlier ones from Since on
	Since   uint64
	Segment uint32 // position after that commit's frame
	Offset  int64
	Counts  Counts
}

// Counts are counters of the caller as of each commit.
type Counts [12]uint64

// ErrUnusable is returned if the file is damaged, of another version, or not an index: it
// must be rebuilt.
var ErrUnusable = errors.New("index cannot be used")

var errClosed = fmt.Errorf("index: %w", backend.ErrClosed)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errLeaf    = errors.New("leaf checksum does not match")
	errBounds  = errors.New("key outside the bounds of its leaf")
	errStale   = errors.New("leaf in a page that is free")
)
