package lookup

import (
	"encoding/binary"
	"math/bits"

	"github.com/lineage-store/lineage/structure"
)

// Finger is a fingerprint and the number of its object.
type Finger struct{ Print, Number uint32 }

// Fingerprint returns the part of a content hash that packs store.
func Fingerprint(hash []byte) uint32 { return binary.BigEndian.Uint32(hash) }

// RunFingerprint mixes the bits of a run's id, which starts with a time.
func RunFingerprint(id structure.RunID) uint32 {
	x := binary.LittleEndian.Uint64(id[:]) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(id[8:]), 29)
	x = (x ^ x>>31) * 0x9e3779b97f4a7c15
	x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
	return uint32(x >> 32)
}

// RunByte returns the byte that the table stores for a run.
func RunByte(id structure.RunID) byte { return byte(RunFingerprint(id)) }
