package layout

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/lineage-store/lineage/internal/varint"
)

// Each chapter begins with its head: its row of the table, without reference to other rows. So the
// chapters of a pack whose end is missing can be found. A head is
//
//   - the size of what follows up to the checksum, 1 byte
//   - varints: the first commit here that is not the rest of one, less the first of the pack; the number
//     of ids, and of bodies, in the chapters before; the end of the frame that continues in the
//     next chapter, or 0
//   - the row, as the table has it after an empty one
//   - CRC-32C of the store id, the salt, the offset of the head (8 bytes), and all of the above

// headStart returns the checksum of what precedes a head at an offset.
func (h Header) headStart(offset int64) uint32 {
	b := append(append(make([]byte, 0, 28), h.Store[:]...), h.Salt[:]...)
	return crc32.Checksum(binary.LittleEndian.AppendUint64(b, uint64(offset)), castagnoli)
}

// EncodeHead returns the head of a chapter. Its offset and the sizes of its parts are known.
func (r *ChapterRow) EncodeHead(h Header) []byte {
	b := make([]byte, 1, 64)
	b = binary.AppendUvarint(b, r.Commit-h.FirstCommit)
	b = binary.AppendUvarint(b, uint64(r.ID))
	b = binary.AppendUvarint(b, r.Body)
	b = binary.AppendUvarint(b, uint64(r.Until))
	b = appendRow(b, r, &ChapterRow{})
	b[0] = byte(len(b) - 1)
	return binary.LittleEndian.AppendUint32(b, crc32.Update(h.headStart(r.Offset), castagnoli, b))
}

// DecodeHead reads the head at the start of bytes that are at an offset of the pack. It returns
// false if there is none.
func DecodeHead(b []byte, offset int64, h Header) (r ChapterRow, ok bool) {
	if len(b) < minHead || int(b[0]) < minHead-5 || len(b) < int(b[0])+5 {
		return r, false
	}
	end := int(b[0]) + 1
	if crc32.Update(h.headStart(offset), castagnoli, b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return r, false
	}
	v := varint.Reader{Rest: b[1:end]}
	commit := h.FirstCommit + v.AtMost(h.LastCommit)
	id, body, until := v.AtMost(1<<32-1), v.AtMost(1<<40), v.AtMost(1<<40)
	err := readRow(&v, &r)
	r.Commit, r.ID, r.Body, r.Until = commit, uint32(id), body, int64(until)
	r.Offset, r.Head = offset, int64(end)+4
	last := commit + uint64(r.Commits) - 1
	if err != nil || v.Bad || len(v.Rest) > 0 || last > h.LastCommit || !r.possible(h) {
		return r, false
	}
	r.LayOut()
	return r, true
}
