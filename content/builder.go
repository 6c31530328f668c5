package content

import (
	"errors"
	"fmt"
)

// PutFunc stores a chunk or an encoded node. It may be called repeatedly with the same one.
// It must not retain or change the bytes: they are overwritten after it returns.
type PutFunc func(key Key, chunk []byte) error

var errFinished = errors.New("tree is already finished")

// TreeBuilder builds the tree over the chunks of a body as they arrive. It keeps only one
// unfinished node per level.
type TreeBuilder struct {
	put    PutFunc
	levels [][]child // the unfinished nodes, from the lowest level up
	buf    []byte
	size   int64
	err    error // why the builder failed
}

// NewTreeBuilder returns a builder that passes all chunks and nodes to put, children before
// their parent.
func NewTreeBuilder(put PutFunc) *TreeBuilder { return &TreeBuilder{put: put} }

// Add appends a chunk of 1 to MaxChunk bytes to the body. After an error, all further calls
// fail.
func (b *TreeBuilder) Add(chunk []byte) error {
	if b.err != nil {
		return b.err
	}
	if len(chunk) == 0 || len(chunk) > MaxChunk {
		b.err = fmt.Errorf("chunk of %d bytes", len(chunk))
		return b.err
	}
	key := KeyOf(chunk)
	if b.err = b.put(key, chunk); b.err == nil {
		b.size += int64(len(chunk))
		b.err = b.grow(0, child{key, int64(len(chunk))})
	}
	return b.err
}

// grow appends a child to the unfinished node at a level, and ends the node if the child's
// key ends it.
func (b *TreeBuilder) grow(level int, c child) error {
	for ; ; level++ {
		if level == len(b.levels) {
			if level == MaxHeight {
				return fmt.Errorf("%w: higher than %d", ErrMalformed, MaxHeight)
			}
			b.levels = append(b.levels, nil)
		}
		b.levels[level] = append(b.levels[level], c)
		if !endsNode(len(b.levels[level]), c.key) {
			return nil
		}
		var err error
		if c, err = b.end(level); err != nil {
			return err
		}
	}
}

// end stores the unfinished node at a level and returns it as a child.
func (b *TreeBuilder) end(level int) (child, error) {
	children := b.levels[level]
	b.buf = appendNode(b.buf[:0], uint8(level+1), children)
	b.levels[level] = children[:0]
	c := child{key: KeyOf(b.buf)}
	for _, below := range children {
		c.size += below.size
	}
	return c, b.put(c.key, b.buf)
}

// Finish stores the unfinished nodes and returns the root of the tree. The builder cannot
// be used afterwards.
func (b *TreeBuilder) Finish() (Root, error) {
	if b.err != nil {
		return Root{}, b.err
	}
	root, err := b.finish()
	b.err = errFinished
	if err != nil {
		b.err = err
		return Root{}, err
	}
	return root, nil
}

func (b *TreeBuilder) finish() (Root, error) {
	// Ending a node may add a level, so their number is read each time.
	for level := 0; level < len(b.levels); level++ {
		top := level == len(b.levels)-1
		children := b.levels[level]
		switch {
		case top && len(children) == 1:
			return Root{Key: children[0].key, Height: uint8(level), Size: b.size}, nil
		case len(children) == 0:
			continue
		}
		node, err := b.end(level)
		if err != nil {
			return Root{}, err
		}
		if top {
			return Root{Key: node.key, Height: uint8(level + 1), Size: b.size}, nil
		}
		if err := b.grow(level+1, node); err != nil {
			return Root{}, err
		}
	}
	return Root{}, nil
}
