package structure

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/varint"
)

// ErrMalformed is returned when bytes are not the binary form of a commit.
var ErrMalformed = errors.New("malformed commit")

// ErrUnknownVersion is returned for a commit or record of a newer program.
var ErrUnknownVersion = errors.New("written by a newer version of the program")

// ErrOldVersion is returned for a commit of an older program that was never released.
var ErrOldVersion = errors.New("written by an older, unreleased version of the program")

func appendUint(dst []byte, v uint64) []byte { return binary.AppendUvarint(dst, v) }

func appendInt(dst []byte, v int64) []byte {
	return binary.AppendUvarint(dst, uint64(v)<<1^uint64(v>>63))
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// appendOptional encodes bytes that may be absent, which differs from empty.
func appendOptional(dst, b []byte) []byte {
	if b == nil {
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(b))+1), b...)
}

func appendOptionalString(dst []byte, s *string) []byte {
	if s == nil {
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(*s))+1), *s...)
}

func appendTime(dst []byte, t time.Time) []byte { return appendInt(dst, t.UnixMilli()) }

// decoder decodes from front to back. The first error sticks: later reads return zero
// values, so that a decoder checks err once at its end. Returned byte slices share
// memory with the input.
type decoder struct {
	rest []byte
	err  error
}

func (c *decoder) fail(what string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", ErrMalformed, what)
	}
	c.rest = nil
}

func (c *decoder) take(n uint64, what string) []byte {
	if n > uint64(len(c.rest)) {
		c.fail(what + " is cut short")
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

func (c *decoder) byte(what string) byte {
	if b := c.take(1, what); b != nil {
		return b[0]
	}
	return 0
}

// uint decodes a varint of minimal length.
func (c *decoder) uint(what string) uint64 {
	v, n := varint.Minimal(c.rest)
	if n == 0 {
		c.fail(what + " is not a number")
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

func (c *decoder) int(what string) int64 {
	v := c.uint(what)
	return int64(v>>1) ^ -int64(v&1)
}

func (c *decoder) string(what string) string { return string(c.bytes(what)) }

// someString decodes a string that a flag announced and that must not be empty.
func (c *decoder) someString(what string) string {
	s := c.string(what)
	if s == "" {
		c.fail(what + " is announced but empty")
	}
	return s
}

func (c *decoder) bytes(what string) []byte { return c.take(c.uint(what), what) }

func (c *decoder) optional(what string) []byte {
	n := c.uint(what)
	if n == 0 {
		return nil
	}
	return c.take(n-1, what)
}

func (c *decoder) optionalString(what string) *string {
	b := c.optional(what)
	if b == nil {
		return nil
	}
	s := string(b)
	return &s
}

func (c *decoder) time(what string) time.Time { return time.UnixMilli(c.int(what)).UTC() }

func (c *decoder) contentID(what string) (id content.ID) {
	copy(id[:], c.take(uint64(len(id)), what))
	return id
}

func readID[T ~[16]byte](c *decoder, what string) (id T) {
	copy(id[:], c.take(uint64(len(id)), what))
	return id
}

// someID decodes an id that a flag announced and that must not be zero.
func someID[T ~[16]byte](c *decoder, what string) T {
	id := readID[T](c, what)
	if id == (T{}) {
		c.fail(what + " is announced but zero")
	}
	return id
}

// end returns the first error, or one for remaining bytes.
func (c *decoder) end() error {
	if c.err == nil && len(c.rest) > 0 {
		c.fail(fmt.Sprintf("%d bytes too many", len(c.rest)))
	}
	return c.err
}

// ErrIncomplete is returned when a record lacks what its kind requires.
var ErrIncomplete = errors.New("incomplete record")
