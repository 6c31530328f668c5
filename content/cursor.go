package content

import (
	"context"
	"fmt"
	"slices"
)

// cursor is a place in a tree: some chunks that follow each other, and the nodes on the way
// to them. A move fetches only nodes that are not on the way to where it was.
type cursor struct {
	path   []step // from the root down
	leaves []subtree
	chunks [][]byte // the bytes of leaves, as many as there were
	ahead  int64    // how much to fetch at once, because the last fetches followed each other
}

const (
	mostAhead  = 1 << 20 // the most bytes that are fetched at once
	mostLeaves = 64      // the most chunks: what a tree says of their sizes may be wrong
)

// step is a node on the way.
type step struct {
	subtree
	children []child
}

// part returns the child that covers off, which the step itself does.
func (s *step) part(off int64) subtree {
	i, start := 0, s.start
	for ; off-start >= s.children[i].size; i++ {
		start += s.children[i].size
	}
	c := s.children[i]
	return subtree{key: c.key, height: s.height - 1, start: start, end: start + c.size}
}

// parts appends to dst the children of a step of height 1 from the one that covers off on,
// up to the one that covers the last of so many bytes.
func (s *step) parts(dst []subtree, off, bytes int64) []subtree {
	end := off + min(bytes, mostAhead)
	start := s.start
	for _, c := range s.children {
		part := subtree{key: c.key, height: s.height - 1, start: start, end: start + c.size}
		if start = part.end; part.end <= off {
			continue
		}
		if len(dst) > 0 && part.start >= end || len(dst) == mostLeaves {
			break
		}
		dst = append(dst, part)
	}
	return dst
}

// from returns the bytes from off to the end of the chunk that covers it. The root must cover
// off. So many bytes from there on will be asked for.
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
		c.ahead = min(2*(off-c.leaves[0].start), mostAhead)
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
		// A step that was here before leaves its memory to the new one.
		path := slices.Grow(c.path, 1)[:n+1]
		s := &path[n]
		children, err := at.fetchChildren(ctx, get, s.children[:0])
		if err != nil {
			return err
		}
		*s = step{at, children}
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
