package content

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// GetFunc returns the chunk or node of a key. The bytes must stay as they are
// afterwards. Its errors are passed on wrapped, io.EOF as io.ErrUnexpectedEOF.
type GetFunc func(ctx context.Context, key Key) ([]byte, error)

// subtree is a chunk or node as the one above it describes it.
type subtree struct {
	key        Key
	height     uint8
	start, end int64 // what of the body lies under it
}

func (r Root) subtree() subtree { return subtree{key: r.Key, height: r.Height, end: r.Size} }

func (s subtree) size() int64 { return s.end - s.start }

func (s subtree) covers(off int64) bool { return s.start <= off && off < s.end }

// fetchChunk returns the bytes of a subtree of height 0.
func (s subtree) fetchChunk(ctx context.Context, get GetFunc) ([]byte, error) {
	b, err := fetch(ctx, get, "chunk", s.key)
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != s.size() {
		return nil, fmt.Errorf("chunk %v: %w: %d bytes where %d were expected", s.key, ErrMalformed, len(b), s.size())
	}
	return b, nil
}

// fetchChildren appends to dst what a higher subtree consists of.
func (s subtree) fetchChildren(ctx context.Context, get GetFunc, dst []child) ([]child, error) {
	b, err := fetch(ctx, get, "node", s.key)
	if err != nil {
		return nil, err
	}
	if dst, err = decodeNode(dst, b, s.height, s.size()); err != nil {
		return nil, fmt.Errorf("node %v: %w", s.key, err)
	}
	return dst, nil
}

func fetch(ctx context.Context, get GetFunc, what string, key Key) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := get(ctx, key)
	if errors.Is(err, io.EOF) {
		// A body must not seem to end where its chunks could not be had.
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("%s %v: %w", what, key, err)
	}
	if KeyOf(b) != key {
		return nil, &MismatchError{What: what, Key: key}
	}
	return b, nil
}
