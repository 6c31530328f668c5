package layout

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum returns the CRC-32C of bytes, the checksum of everything in a pack.
func Sum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// AppendSum appends the checksum of the bytes from start.
func AppendSum(b []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(b, Sum(b[start:]))
}

// WithSum returns the bytes with their checksum, or nothing for no bytes.
func WithSum(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return AppendSum(b, 0)
}

// SumMatches reports whether bytes end with their checksum.
func SumMatches(b []byte) bool {
	end := len(b) - 4
	return Sum(b[:end]) == binary.LittleEndian.Uint32(b[end:])
}
