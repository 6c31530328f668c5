package content

import (
	"errors"
	"fmt"
)

var (
	// ErrMismatch is returned when bytes do not have the requested hash.
	ErrMismatch = errors.New("content does not match its hash")
	// ErrMalformed is returned for a malformed tree whose bytes match their keys: it
	// was written by a newer version, or not by this package.
	ErrMalformed = errors.New("malformed content tree")
)

// MismatchError identifies the bytes that do not match their hash. It matches
// ErrMismatch.
type MismatchError struct {
	What string // "chunk", "node" or "body"
	Key  Key    // the requested key of a chunk or node
	ID   ID     // the requested id of a body
}

func (e *MismatchError) Error() string {
	if e.ID.IsZero() {
		return fmt.Sprintf("%s %v: %v", e.What, e.Key, ErrMismatch)
	}
	return fmt.Sprintf("%s %v: %v", e.What, e.ID, ErrMismatch)
}

func (e *MismatchError) Unwrap() error { return ErrMismatch }
