package content

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// GetFunc returns the chunks or nodes with the given keys, in order. The bytes must not
// change afterwards. Errors are returned wrapped, io.EOF as io.ErrUnexpectedEOF.
type GetFunc func(ctx context.Context, keys []Key) ([][]byte, error)

// subtree is a chunk or node as described by its parent.
type subtree struct {
	key        Key
	height     uint8
	start, end int64 // range of the body
}

func (r Root) subtree() subtree { return subtree{key: r.Key, height: r.Height, end: r.Size} }

func (s subtree) size() int64 { return s.end - s.start }

func (s subtree) covers(off int64) bool { return s.start <= off && off < s.end }

// check returns an error if b is not the chunk of a subtree of height 0.
func (s subtree) check(b []byte) error {
	if KeyOf(b) != s.key {
		return &MismatchError{What: "chunk", Key: s.key}
	}
	if int64(len(b)) != s.size() {
		return fmt.Errorf("chunk %v: %w: %d bytes where %d were expected", s.key, ErrMalformed, len(b), s.size())
	}
	return nil
}

// fetchChunks returns the bytes of subtrees of height 0: of the first one, and of as many
// following ones as are available.
func fetchChunks(ctx context.Context, get GetFunc, parts []subtree) ([][]byte, error) {
	all, err := fetch(ctx, get, "chunk", parts)
	if err != nil && len(parts) > 1 {
		all, err = fetch(ctx, get, "chunk", parts[:1])
	}
	if err != nil {
		return nil, err
	}
	for i, b := range all {
		if err := parts[i].check(b); err != nil {
			if i > 0 {
				return all[:i], nil
			}
			return nil, err
		}
	}
	return all, nil
}

// fetchChildren appends to dst the children of a node.
func (s subtree) fetchChildren(ctx context.Context, get GetFunc, dst []child) ([]child, error) {
	nodes, err := fetch(ctx, get, "node", []subtree{s})
	if err != nil {
		return nil, err
	}
	return s.children(nodes[0], dst)
}

// children appends to dst the children of the node encoded in b.
func (s subtree) children(b []byte, dst []child) ([]child, error) {
	if KeyOf(b) != s.key {
		return nil, &MismatchError{What: "node", Key: s.key}
	}
	dst, err := decodeNode(dst, b, s.height, s.size())
	if err != nil {
		return nil, fmt.Errorf("node %v: %w", s.key, err)
	}
	return dst, nil
}

func fetch(ctx context.Context, get GetFunc, what string, parts []subtree) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	keys := make([]Key, len(parts))
	for i, s := range parts {
		keys[i] = s.key
	}
	all, err := get(ctx, keys)
	if errors.Is(err, io.EOF) || err == nil && len(all) != len(keys) {
		// A body must not seem to end at missing chunks.
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("%s %v: %w", what, keys[0], err)
	}
	return all, nil
}
