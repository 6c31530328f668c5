package keys

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/structure"
)

// Source is the key that finds the name of a branch or checkpoint by source id and thread.
// Without a thread it is the prefix for all threads.
func Source(table byte, sourceID string, thread ...byte) []byte {
	sum := sha256.Sum256([]byte(sourceID))
	return Of(table, sum[:HashPrefix], thread)
}

// The key that finds a usage by its source id has the start of two hashes: of the source id, and of the home and the
// source id. Its value is the rest of them, with as many bytes together as other hashes in keys. A sealed entry has no
// value: the span and the home of its run are compared instead.
const (
	sourcePrefix = 3
	homePrefix   = 2
	// LookupsInSize is the size of the result of LookupsIn.
	LookupsInSize = 1 + sourcePrefix + homePrefix
	refSize       = 16 + 8
)

// SourceHash finds the usages with a source id in a home.
type SourceHash struct{ bySource, byHome [HashPrefix / 2]byte }

// HashOfSource returns the SourceHash of a source id in a home.
func HashOfSource(home structure.Home, sourceID string) (s SourceHash) {
	sum := sha256.Sum256([]byte(sourceID))
	copy(s.bySource[:], sum[:])
	homed := make([]byte, 0, 128)
	homed = append(homed, home.Thread[:]...)
	homed = binary.BigEndian.AppendUint64(homed, home.Incarnation)
	sum = sha256.Sum256(append(homed, sourceID...))
	copy(s.byHome[:], sum[:])
	return s
}

// Prefix is the key prefix of the usages. Greater lookups come first. Other source ids and homes may have the same.
func (s *SourceHash) Prefix() []byte {
	k := make([]byte, 0, LookupsInSize+9+refSize)
	return append(append(append(k, TableSpanBySource), s.bySource[:sourcePrefix]...), s.byHome[:homePrefix]...)
}

// appendRest appends the rest of the hashes, which is the value of the entries.
func (s *SourceHash) appendRest(dst []byte) []byte {
	return append(append(dst, s.bySource[sourcePrefix:]...), s.byHome[homePrefix:]...)
}

// Has reports whether an entry with the prefix belongs to the usages. It is unsure of a sealed entry.
func (s *SourceHash) Has(value []byte) (has, sure bool) {
	if len(value) == 0 {
		return true, false
	}
	var rest [HashPrefix]byte
	return bytes.Equal(value, s.appendRest(rest[:0])), true
}

// Lookups is the key prefix of the usages with a source id in all homes, and of some with other source ids.
func Lookups(sourceID string) []byte {
	sum := sha256.Sum256([]byte(sourceID))
	k := make([]byte, 0, LookupsInSize+9)
	return append(append(k, TableSpanBySource), sum[:sourcePrefix]...)
}

// LookupsIn is the key prefix of the usages with a source id in a home.
func LookupsIn(home structure.Home, sourceID string) []byte {
	s := HashOfSource(home, sourceID)
	return s.Prefix()
}

// AppendLookup appends the entry of a span with a source id and the number of its version.
func AppendLookup(key, value []byte, l judge.Lookup, span structure.SpanRef) (k, v []byte) {
	s := HashOfSource(l.Home, l.SourceID)
	key = append(append(append(key, TableSpanBySource), s.bySource[:sourcePrefix]...), s.byHome[:homePrefix]...)
	key = append(AppendNumber(key, l.Number), span.Run[:]...)
	return binary.BigEndian.AppendUint64(key, span.Seq), s.appendRest(value)
}

// ReadLookup returns the number of the version and the span in a key.
func ReadLookup(k []byte) (number uint64, span structure.SpanRef, err error) {
	at := len(k) - refSize
	if at <= LookupsInSize {
		return 0, span, ErrValue
	}
	number = numberOf(k[LookupsInSize:at])
	span.Seq = ReadUint64(k[at+copy(span.Run[:], k[at:]):])
	if number == 0 || span.Seq == 0 {
		return 0, span, ErrValue
	}
	return number, span, nil
}

// Sealed returns what the sealed table keeps of a value.
func Sealed(key, value []byte) []byte {
	if key[0] == TableSpanBySource {
		return Present
	}
	return value
}

// SameSealed reports whether two values of a key are the same in the sealed table.
func SameSealed(key, a, b []byte) bool { return bytes.Equal(Sealed(key, a), Sealed(key, b)) }

// smallNumber is the greatest number that is encoded in one byte.
const smallNumber = 240

// AppendNumber appends a number, which is not 0, so that keys sort in descending order.
func AppendNumber(k []byte, number uint64) []byte {
	if number <= smallNumber {
		return append(k, 0xff-byte(number))
	}
	return binary.BigEndian.AppendUint64(append(k, 0), ^number)
}

// numberOf is the inverse of AppendNumber. It returns 0 for other bytes.
func numberOf(b []byte) uint64 {
	switch {
	case len(b) == 1 && b[0] >= 0xff-smallNumber:
		return uint64(0xff - b[0])
	case len(b) == 9 && b[0] == 0:
		return ^binary.BigEndian.Uint64(b[1:])
	}
	return 0
}
