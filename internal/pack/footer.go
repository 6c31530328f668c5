package pack

import (
	"encoding/binary"
	"errors"
)

// footer locates the rest of the file. It is stored twice, at the end of the file. Before
// it come the parity with its CRC-32C; before that the lookup tables, ending with their
// directory; and before that the table of chapters.
//
//	 0  offset of the table, 8 bytes
//	 8  its length, 4 bytes, and CRC-32C, 4 bytes
//	16  length of the directory of what finds things, 4 bytes; 0 for none
//	20  length of the parity, 4 bytes
//	24  CRC-32C of the header, 4 bytes
//	28  CRC-32C of the 28 bytes before, 4 bytes
//	32  magic "LINPKEND"
type footer struct {
	offset    int64
	length    uint32
	sum       uint32
	directory uint32
	parity    uint32
	header    uint32
}

func (f footer) encode() []byte {
	b := make([]byte, footerSize)
	binary.LittleEndian.PutUint64(b, uint64(f.offset))
	binary.LittleEndian.PutUint32(b[8:], f.length)
	binary.LittleEndian.PutUint32(b[12:], f.sum)
	binary.LittleEndian.PutUint32(b[16:], f.directory)
	binary.LittleEndian.PutUint32(b[20:], f.parity)
	binary.LittleEndian.PutUint32(b[24:], f.header)
	binary.LittleEndian.PutUint32(b[28:], checksum(b[:28]))
	copy(b[32:], endMagic)
	return b
}

func decodeFooter(b []byte) (f footer, err error) {
	if len(b) != footerSize || string(b[32:]) != endMagic || checksum(b[:28]) != binary.LittleEndian.Uint32(b[28:]) {
		return f, errors.New("footer checksum does not match")
	}
	return footer{
		offset: int64(binary.LittleEndian.Uint64(b)), length: binary.LittleEndian.Uint32(b[8:]), sum: binary.LittleEndian.Uint32(b[12:]),
		directory: binary.LittleEndian.Uint32(b[16:]), parity: binary.LittleEndian.Uint32(b[20:]), header: binary.LittleEndian.Uint32(b[24:]),
	}, nil
}

// parityAt returns the offset of the parity in a file of a size.
func (f footer) parityAt(size int64) int64 { return size - tailSize - 4 - int64(f.parity) }

// lookupAt returns the offset of the lookup tables, which end at the parity.
func (f footer) lookupAt() int64 { return f.offset + int64(f.length) }

// fits reports whether the footer is possible in a file of a size.
func (f footer) fits(size int64) bool {
	end := f.parityAt(size)
	return f.offset >= headerSize && f.offset <= size && f.length <= maxTable && f.directory <= maxTable && f.lookupAt()+int64(f.directory) <= end && int(f.parity) == paritySize(end)
}
