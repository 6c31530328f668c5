package pack

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the CRC-32C of bytes, the checksum of everything in a pack.
func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// summed appends the checksum of the bytes from start.
func summed(b []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(b, checksum(b[start:]))
}

// withSum returns the bytes with their checksum, or nothing for no bytes.
func withSum(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return summed(b, 0)
}

// sumMatches reports whether bytes end with their checksum.
func sumMatches(b []byte) bool {
	end := len(b) - 4
	return checksum(b[:end]) == binary.LittleEndian.Uint32(b[end:])
}
