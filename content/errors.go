package content

import (
	"errors"
	"fmt"
)

var (
	// ErrMismatch is returned when bytes do not have the requested hash.
	ErrMismatch = errors.New("content does not match its hash")
	// ErrMalformed is returned when a tree is not well formed, although its bytes
	// match their keys: no version of this package wrote it, or a newer one did.
	ErrMalformed = errors.New("malformed content tree")
)

// MismatchError names the bytes that do not match their hash. It matches ErrMismatch.
type MismatchError struct {
	What string // "chunk", "node" or "body"
	Key  Key    // the key of a chunk or node that was asked for
	ID   ID     // the id of a body that was asked for
}

func (e *MismatchError) Error() string {
	if e.ID.IsZero() {
		return fmt.Sprintf("%s %v: %v", e.What, e.Key, ErrMismatch)
	}
	return fmt.Sprintf("%s %v: %v", e.What, e.ID, ErrMismatch)
}

func (e *MismatchError) Unwrap() error { return ErrMismatch }
