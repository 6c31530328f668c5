// Package layout has what a pack's file consists of besides its records: its name, header and footer, the table of
// chapters and their heads, checksums and parity.
package layout

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
)

// FormatVersion is the version of the layout that this program writes, and the newest that
// it reads.
const FormatVersion = 9

const (
	HeaderSize = 64
	FooterSize = 40
	TailSize   = 2 * FooterSize // it is stored twice
	// MaxFile exceeds the size of any pack: its source is 64 MiB of segments, or one
	// segment of at most 4 GiB. maxTable limits the table and the directory.
	MaxFile  = 8 << 30
	maxTable = 1 << 28
	magic    = "LINEAGEP"
	endMagic = "LINPKEND"
)

// Header is the first 64 bytes of a pack, integers little-endian:
//
//	 0  magic "LINEAGEP"
//	 8  format version, 4 bytes
//	12  first and last number of the segments that it replaces, 4 bytes each
//	20  number of the first commit, 8 bytes
//	28  number of the last commit, 8 bytes
//	36  store id, 16 bytes
//	52  flags, 1 byte: 1 when it was made to be small rather than fast, 2 when a collection
//	    removed records; others announce something that this program does not know
//	53  salt, 4 bytes: begins the checksum of every head of a chapter, so that bytes inside a
//	    message cannot pass for one
//	57  zero, 3 bytes
//	60  CRC-32C of the 60 bytes before
type Header struct {
	First, Last             uint32
	FirstCommit, LastCommit uint64 // none if LastCommit is FirstCommit-1
	Store                   [16]byte
	// Dense packs are smaller, but slower to write and read.
	Dense bool
	// Collected packs lack records that a collection removed.
	Collected bool
	Salt      [4]byte
}

const (
	flagDense = 1 << iota
	flagCollected
)

func (h Header) Encode() []byte {
	b := make([]byte, HeaderSize)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], FormatVersion)
	binary.LittleEndian.PutUint32(b[12:], h.First)
	binary.LittleEndian.PutUint32(b[16:], h.Last)
	binary.LittleEndian.PutUint64(b[20:], h.FirstCommit)
	binary.LittleEndian.PutUint64(b[28:], h.LastCommit)
	copy(b[36:], h.Store[:])
	if h.Dense {
		b[52] |= flagDense
	}
	if h.Collected {
		b[52] |= flagCollected
	}
	copy(b[53:57], h.Salt[:])
	binary.LittleEndian.PutUint32(b[60:], Sum(b[:60]))
	return b
}

func DecodeHeader(b []byte) (h Header, err error) {
	if len(b) < HeaderSize || string(b[:8]) != magic {
		return h, errors.New("not a pack")
	}
	v := binary.LittleEndian.Uint32(b[8:])
	if v > FormatVersion {
		return h, fmt.Errorf("%w: pack format %d, this program reads up to %d", backend.ErrNewerFormat, v, FormatVersion)
	}
	if Sum(b[:60]) != binary.LittleEndian.Uint32(b[60:]) {
		return h, errors.New("header checksum does not match")
	}
	if v > 0 && v < FormatVersion {
		return h, fmt.Errorf("%w: pack format %d, this program reads %d", backend.ErrOlderFormat, v, FormatVersion)
	}
	if b[52]&^(flagDense|flagCollected) != 0 {
		return h, fmt.Errorf("%w: pack with flags %d", backend.ErrNewerFormat, b[52])
	}
	h = Header{
		First: binary.LittleEndian.Uint32(b[12:]), Last: binary.LittleEndian.Uint32(b[16:]),
		FirstCommit: binary.LittleEndian.Uint64(b[20:]), LastCommit: binary.LittleEndian.Uint64(b[28:]),
		Store: [16]byte(b[36:]), Dense: b[52]&flagDense != 0, Collected: b[52]&flagCollected != 0,
		Salt: [4]byte(b[53:]),
	}
	if v != FormatVersion || h.First == 0 || h.Last < h.First || h.FirstCommit == 0 || h.LastCommit >= 1<<62 || h.LastCommit+1 < h.FirstCommit || [3]byte(b[57:]) != [3]byte{} {
		return h, errors.New("header makes no sense")
	}
	return h, nil
}
