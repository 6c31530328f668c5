package layout

import (
	"encoding/binary"
	"errors"
)

// Footer locates the rest of the file. It is stored twice, at the end of the file. Before
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
type Footer struct {
	TableAt       int64
	TableSize     uint32
	TableSum      uint32
	DirectorySize uint32
	ParitySize    uint32
	HeaderSum     uint32
}

func (f Footer) Encode() []byte {
	b := make([]byte, FooterSize)
	binary.LittleEndian.PutUint64(b, uint64(f.TableAt))
	binary.LittleEndian.PutUint32(b[8:], f.TableSize)
	binary.LittleEndian.PutUint32(b[12:], f.TableSum)
	binary.LittleEndian.PutUint32(b[16:], f.DirectorySize)
	binary.LittleEndian.PutUint32(b[20:], f.ParitySize)
	binary.LittleEndian.PutUint32(b[24:], f.HeaderSum)
	binary.LittleEndian.PutUint32(b[28:], Sum(b[:28]))
	copy(b[32:], endMagic)
	return b
}

func DecodeFooter(b []byte) (f Footer, err error) {
	if len(b) != FooterSize || string(b[32:]) != endMagic || Sum(b[:28]) != binary.LittleEndian.Uint32(b[28:]) {
		return f, errors.New("footer checksum does not match")
	}
	return Footer{
		TableAt: int64(binary.LittleEndian.Uint64(b)), TableSize: binary.LittleEndian.Uint32(b[8:]), TableSum: binary.LittleEndian.Uint32(b[12:]),
		DirectorySize: binary.LittleEndian.Uint32(b[16:]), ParitySize: binary.LittleEndian.Uint32(b[20:]), HeaderSum: binary.LittleEndian.Uint32(b[24:]),
	}, nil
}

// ParityAt returns the offset of the parity in a file of a size.
func (f Footer) ParityAt(size int64) int64 { return size - TailSize - 4 - int64(f.ParitySize) }

// LookupAt returns the offset of the lookup tables, which end at the parity.
func (f Footer) LookupAt() int64 { return f.TableAt + int64(f.TableSize) }

// Fits reports whether the footer is possible in a file of a size.
func (f Footer) Fits(size int64) bool {
	end := f.ParityAt(size)
	return f.TableAt >= HeaderSize && f.TableAt <= size && f.TableSize <= maxTable && f.DirectorySize <= maxTable && f.LookupAt()+int64(f.DirectorySize) <= end && int(f.ParitySize) == ParitySize(end)
}
