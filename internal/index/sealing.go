package index

import (
	"encoding/binary"
)

// sealing identifies the sealed table of a file by the checksum of its directory.
type sealing struct{ sum uint32 }

// append appends the encoding of a sealing. It is nil if there is no table.
func (s *sealing) append(b []byte) []byte {
	if s == nil {
		return append(b, 0, 0, 0, 0, 0)
	}
	return binary.LittleEndian.AppendUint32(append(b, 1), s.sum)
}

func readSealing(b []byte) *sealing {
	if b[0] == 0 {
		return nil
	}
	return &sealing{sum: binary.LittleEndian.Uint32(b[1:])}
}

var (
	sealedBucket = []byte("sealed")
	directoryKey = []byte("directory")
)

// extentKey is the key of an extent of the sealed table.
func extentKey(n uint32) []byte { return binary.BigEndian.AppendUint32([]byte("e"), n) }

var (
	leavesBucket = []byte("leaves")
	metaBucket   = []byte("meta")
	stateKey     = []byte("state")
)
