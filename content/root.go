package content

import "fmt"

// Root is the root of the tree over a chunked body. An empty body has no chunks
// and the zero Root.
type Root struct {
	// Key is the key of the topmost node, or of the only chunk.
	Key Key
	// Height is the number of levels of nodes above the chunks.
	Height uint8
	// Size is the size of the body in bytes.
	Size int64
}

// IsZero reports whether there is no tree.
func (r Root) IsZero() bool { return r == Root{} }

func (r Root) validate() error {
	switch {
	case r.IsZero():
		return nil
	case r.Size <= 0:
		return fmt.Errorf("%w: root of %d bytes", ErrMalformed, r.Size)
	case r.Height > MaxHeight:
		return fmt.Errorf("%w: root of height %d", ErrMalformed, r.Height)
	case r.Height == 0 && r.Size > MaxChunk:
		return fmt.Errorf("%w: chunk of %d bytes", ErrMalformed, r.Size)
	}
	return nil
}
