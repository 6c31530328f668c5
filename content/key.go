package content

import (
	"encoding/hex"

	"github.com/zeebo/blake3"
)

// Key identifies a chunk or a tree node: the BLAKE3 of its bytes. Keys are
// internal to stores and appear elsewhere only in messages. The zero Key means
// none.
type Key [32]byte

// KeyOf returns the key of a chunk or an encoded node.
func KeyOf(chunk []byte) Key { return blake3.Sum256(chunk) }

// ParseKey parses the 64 hexadecimal digits of a key, in either case. The error
// is a *ParseError.
func ParseKey(s string) (Key, error) { return parseHash("chunk key", s) }

// IsZero reports whether the key is absent.
func (k Key) IsZero() bool { return k == Key{} }

// String returns the key as 64 lower-case hexadecimal digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// AppendText implements encoding.TextAppender.
func (k Key) AppendText(b []byte) ([]byte, error) { return hex.AppendEncode(b, k[:]), nil }

// MarshalText implements encoding.TextMarshaler.
func (k Key) MarshalText() ([]byte, error) { return k.AppendText(nil) }

// UnmarshalText implements encoding.TextUnmarshaler. After an error the key is
// unchanged.
func (k *Key) UnmarshalText(text []byte) error {
	parsed, err := ParseKey(string(text))
	if err == nil {
		*k = parsed
	}
	return err
}
