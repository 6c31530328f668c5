package structure

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest identifies a history: a span's SHA-256 over its parent's digest and
// the roles, names and content ids of its usages, without other ids and times.
// Two histories with equal digests have the same messages, in any store.
type Digest [32]byte

// String returns the digest in hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether this is the digest of the empty history.
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// NextDigest returns the digest of a span with the given usages after a history
// with the parent digest. The empty history has the zero digest. The hashed
// bytes must not change: digests are compared between stores.
func NextDigest(parent Digest, usages []Usage) Digest {
	var stack [256]byte
	b := append(stack[:0], parent[:]...)
	for i := range usages {
		u := &usages[i]
		b = append(b, kindByte(u))
		switch u.Kind {
		case MessageUsage:
			b = appendString(b, u.Role)
			if u.Name == u.Role {
				b = append(b, 0)
			} else {
				b = appendString(b, u.Name)
			}
		case DocumentUsage:
			b = appendUint(appendString(b, u.Document), u.Revision)
		case AssetUsage:
			b = appendString(b, u.Filename)
		case PartUsage:
			b = appendString(b, u.Name)
		}
		b = append(b, u.Content[:]...)
	}
	return sha256.Sum256(b)
}
