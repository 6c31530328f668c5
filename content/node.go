package content

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/lineage-store/lineage/internal/varint"
)

// The number of children of a tree node. These values determine where nodes end
// and must not change.
const (
	minChildren = 16
	maxChildren = 512
	// A key with none of these bits ends its node: one in 128 does.
	endMask = 127
)

// nodeVersion is the first byte of every encoded node.
const nodeVersion = 1

// MaxHeight is the largest height of a tree. Nodes of minChildren over chunks
// of MinChunk cover every int64 size at height 13.
const MaxHeight = 16

// child is one entry of a node: a chunk, or a node one level below.
type child struct {
	key  Key
	size int64 // size of the body below it
}

// endsNode reports whether a node of n children ends with the given one. It
// depends on the key, so that an edit changes only the ends of nodes around it.
// around it.
func endsNode(n int, last Key) bool {
	if n < minChildren {
		return false
	}
	return n == maxChildren || binary.BigEndian.Uint16(last[len(last)-2:])&endMask == 0
}

// appendNode appends the encoding of a node: version, height, the number of
// children, and the key and size of each. Numbers are varints of minimal
// length.
func appendNode(dst []byte, height uint8, children []child) []byte {
	dst = append(dst, nodeVersion, height)
	dst = binary.AppendUvarint(dst, uint64(len(children)))
	for _, c := range children {
		dst = append(dst, c.key[:]...)
		dst = binary.AppendUvarint(dst, uint64(c.size))
	}
	return dst
}

// decodeNode appends the children of an encoded node to dst. It accepts only
// the output of appendNode for the given height and total size.
func decodeNode(dst []child, b []byte, height uint8, size int64) ([]child, error) {
	if len(b) < 2 {
		return nil, fmt.Errorf("%w: node of %d bytes", ErrMalformed, len(b))
	}
	if b[0] != nodeVersion {
		return nil, fmt.Errorf("%w: node of version %d", ErrMalformed, b[0])
	}
	if b[1] != height || height == 0 {
		return nil, fmt.Errorf("%w: node of height %d where %d was expected", ErrMalformed, b[1], height)
	}
	if size <= 0 {
		return nil, fmt.Errorf("%w: node over %d bytes", ErrMalformed, size)
	}
	count, rest, ok := cutUvarint(b[2:])
	if !ok || count == 0 || count > maxChildren {
		return nil, fmt.Errorf("%w: bad number of children", ErrMalformed)
	}
	limit := int64(math.MaxInt64)
	if height == 1 {
		limit = MaxChunk
	}
	for range count {
		var c child
		if len(rest) < len(c.key) {
			return nil, fmt.Errorf("%w: node ends early", ErrMalformed)
		}
		rest = rest[copy(c.key[:], rest):]
		var n uint64
		if n, rest, ok = cutUvarint(rest); !ok || n == 0 || n > uint64(min(limit, size)) {
			return nil, fmt.Errorf("%w: bad size of a child", ErrMalformed)
		}
		c.size = int64(n)
		size -= c.size
		dst = append(dst, c)
	}
	if size != 0 {
		return nil, fmt.Errorf("%w: node is %d bytes short of its size", ErrMalformed, size)
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("%w: %d bytes after a node", ErrMalformed, len(rest))
	}
	return dst, nil
}

// cutUvarint splits a varint of minimal length from the front of b.
func cutUvarint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := varint.Minimal(b)
	return v, b[n:], n > 0
}
