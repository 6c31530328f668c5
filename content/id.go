package content

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// shortLen is the number of hexadecimal digits in the short form of an id.
const shortLen = 12

// ID identifies a content block: the SHA-256 of its body. The zero ID means none.
type ID [sha256.Size]byte

// Sum returns the id of a body.
func Sum(body []byte) ID { return sha256.Sum256(body) }

// ParseID parses the 64 hexadecimal digits of an id, in either case. The error is
// a *ParseError.
func ParseID(s string) (ID, error) { return parseHash("content id", s) }

// IsZero reports whether the id is absent.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders ids by their bytes.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// String returns the id as 64 lower-case hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Short returns the first 12 digits, for display and not for lookups.
func (id ID) Short() string { return hex.EncodeToString(id[:shortLen/2]) }

// AppendText implements encoding.TextAppender.
func (id ID) AppendText(b []byte) ([]byte, error) { return hex.AppendEncode(b, id[:]), nil }

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText implements encoding.TextUnmarshaler. After an error the id is
// unchanged.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := ParseID(string(text))
	if err == nil {
		*id = parsed
	}
	return err
}

// Hasher computes the id of a body that is written in pieces.
type Hasher struct {
	sha hash.Hash
}

// NewHasher returns a hasher of an empty body.
func NewHasher() *Hasher { return &Hasher{sha: sha256.New()} }

// Write appends to the body. It never fails.
func (h *Hasher) Write(p []byte) (int, error) { return h.sha.Write(p) }

// ID returns the id of the bytes written so far. More may be written.
func (h *Hasher) ID() (id ID) {
	h.sha.Sum(id[:0])
	return id
}
