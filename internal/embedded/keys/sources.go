package keys

import (
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

const (
	// sourcePrefix is the number of bytes of a source id's hash at the start of a lookup key.
	// The hash of the home and the source id that follows distinguishes source ids that share
	// them: both together have as many bytes as other hashes in keys.
	sourcePrefix = HashPrefix / 2
	// LookupsInSize is the size of the result of LookupsIn.
	LookupsInSize = 1 + HashPrefix
)

// Lookups is the key prefix of the usages with a source id in all homes.
func Lookups(sourceID string) []byte {
	sum := sha256.Sum256([]byte(sourceID))
	k := make([]byte, 0, LookupsInSize+9)
	return append(append(k, TableSpanBySource), sum[:sourcePrefix]...)
}

// LookupsIn is the key prefix of the usages with a source id in a home, and the key of lookup
// 1. Greater lookups follow in descending order.
func LookupsIn(home structure.Home, sourceID string) []byte {
	k := Lookups(sourceID)
	of := make([]byte, 0, 128)
	of = append(of, home.Thread[:]...)
	of = binary.BigEndian.AppendUint64(of, home.Incarnation)
	of = append(of, sourceID...)
	sum := sha256.Sum256(of)
	return append(k, sum[:HashPrefix-sourcePrefix]...)
}

// Lookup returns the key of the entry for a source id and the number of its version.
func Lookup(l judge.Lookup) []byte { return AppendNumber(LookupsIn(l.Home, l.SourceID), l.Number) }

// smallNumber is the greatest number that is encoded in one byte.
const smallNumber = 240

// AppendNumber appends a number so that keys sort in descending order. 1 is encoded in no
// bytes.
func AppendNumber(k []byte, number uint64) []byte {
	switch {
	case number <= 1:
		return k
	case number <= smallNumber:
		return append(k, 0xff-byte(number))
	}
	return binary.BigEndian.AppendUint64(append(k, 0), ^number)
}

// NumberOf is the inverse of AppendNumber. It returns 0 for other bytes.
func NumberOf(b []byte) uint64 {
	switch len(b) {
	case 0:
		return 1
	case 1:
		return uint64(0xff - b[0])
	case 9:
		return ^binary.BigEndian.Uint64(b[1:])
	}
	return 0
}
