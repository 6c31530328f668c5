package content

import (
	"context"
	"fmt"
	"slices"
)

// cursor is a position in a tree: consecutive chunks and the nodes above them. A move fetches
// only nodes that are not above the old position.
type cursor struct {
	path   []ancestor // from the root down
	leaves []subtree
	chunks [][]byte // the fetched bytes of leaves, possibly fewer
	ahead  int64    // size to fetch at once, if the last fetches were sequential
}

const (
	maxAhead  = 1 << 20 // largest size fetched at once
	maxLeaves = 64      // largest number of chunks: the sizes in a tree may be wrong
)

// ancestor is a node above the position.
type ancestor struct {
	subtree
	children []child
}

// part returns the child that covers off, which is within the node.
func (s *ancestor) part(off int64) subtree {
	i, start := 0, s.start
	for ; off-start >= s.children[i].size; i++ {
		start += s.children[i].size
	}
	c := s.children[i]
	return subtree{key: c.key, height: s.height - 1, start: start, end: start + c.size}
}

// parts appends to dst the children of a node of height 1 that cover a number of bytes from off on, up to maxAhead and
// maxLeaves.
func (s *ancestor) parts(dst []subtree, off, bytes int64) []subtree {
	end := off + min(bytes, maxAhead)
	start := s.start
	for _, c := range s.children {
		part := subtree{key: c.key, height: s.height - 1, start: start, end: start + c.size}
		if start = part.end; part.end <= off {
			continue
		}
		if len(dst) > 0 && part.start >= end || len(dst) == maxLeaves {
			break
		}
		dst = append(dst, part)
	}
	return dst
}

// from returns the bytes from off to the end of its chunk. The root must cover off. wanted is
// the number of bytes that will be read from there.
func (c *cursor) from(ctx context.Context, root Root, get GetFunc, off, wanted int64) ([]byte, error) {
	for range 2 {
		for i, b := range c.chunks {
			if c.leaves[i].covers(off) {
				return b[off-c.leaves[i].start:], nil
			}
		}
		if err := c.move(ctx, root, get, off, wanted); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("node above byte %d: %w", off, ErrMalformed)
}

func (c *cursor) move(ctx context.Context, root Root, get GetFunc, off, wanted int64) error {
	if n := len(c.chunks); n > 0 && c.leaves[n-1].end == off {
		c.ahead = min(2*(off-c.leaves[0].start), maxAhead)
	} else {
		c.ahead = 0
	}
	n := len(c.path)
	for n > 0 && !c.path[n-1].covers(off) {
		n--
	}
	at := root.subtree()
	if n > 0 {
		at = c.path[n-1].part(off)
	}
	c.path, c.leaves, c.chunks = c.path[:n], c.leaves[:0], nil
	for ; at.height > 0; n++ {
		// A former node leaves its memory to the new one.
		path := slices.Grow(c.path, 1)[:n+1]
		s := &path[n]
		children, err := at.fetchChildren(ctx, get, s.children[:0])
		if err != nil {
			return err
		}
		*s = ancestor{at, children}
		c.path, at = path, s.part(off)
	}
	if n == 0 {
		c.leaves = append(c.leaves, at)
	} else {
		c.leaves = c.path[n-1].parts(c.leaves, off, max(wanted, c.ahead))
	}
	var err error
	c.chunks, err = fetchChunks(ctx, get, c.leaves)
	return err
}
