package content

import (
	"context"
	"fmt"
	"io"
)

// Cut reads a body to its end, and passes its chunks and the tree over them to
// put. It returns the body's id and the root of the tree. Its memory does not
// depend on the size of the body.
//
// The context is checked between chunks; it does not end a blocked read.
func Cut(ctx context.Context, r io.Reader, put PutFunc) (ID, Root, error) {
	hasher, chunker, tree := NewHasher(), NewChunker(r), NewTreeBuilder(put)
	for {
		if err := ctx.Err(); err != nil {
			return ID{}, Root{}, fmt.Errorf("cutting body: %w", err)
		}
		chunk, err := chunker.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return ID{}, Root{}, fmt.Errorf("reading body: %w", err)
		}
		_, _ = hasher.Write(chunk)
		if err := tree.Add(chunk); err != nil {
			return ID{}, Root{}, fmt.Errorf("storing chunk: %w", err)
		}
	}
	root, err := tree.Finish()
	if err != nil {
		return ID{}, Root{}, fmt.Errorf("storing tree: %w", err)
	}
	return hasher.ID(), root, nil
}
