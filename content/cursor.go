package content

import (
	"context"
	"slices"
)

// cursor is a place in a tree: a chunk, and the nodes on the way to it. A move
// fetches only nodes that are not on the way to where it was.
type cursor struct {
	path  []step // from the root down
	leaf  subtree
	chunk []byte // the bytes of leaf, nil when there are none yet
}

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

// from returns the bytes from off to the end of the chunk that covers it. The
// root must cover off.
func (c *cursor) from(ctx context.Context, root Root, get GetFunc, off int64) ([]byte, error) {
	if c.chunk == nil || !c.leaf.covers(off) {
		if err := c.move(ctx, root, get, off); err != nil {
			return nil, err
		}
	}
	return c.chunk[off-c.leaf.start:], nil
}

func (c *cursor) move(ctx context.Context, root Root, get GetFunc, off int64) error {
	n := len(c.path)
	for n > 0 && !c.path[n-1].covers(off) {
		n--
	}
	at := root.subtree()
	if n > 0 {
		at = c.path[n-1].part(off)
	}
	c.path, c.chunk = c.path[:n], nil
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
	chunk, err := at.fetchChunk(ctx, get)
	if err != nil {
		return err
	}
	c.leaf, c.chunk = at, chunk
	return nil
}
