package pack

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/lineage-store/lineage/internal/varint"
)

// headStart returns the checksum of what precedes a head at an offset.
func (h Header) headStart(offset int64) uint32 {
	b := append(append(make([]byte, 0, 28), h.Store[:]...), h.Salt[:]...)
	return crc32.Checksum(binary.LittleEndian.AppendUint64(b, uint64(offset)), castagnoli)
}

// encodeHead returns the head of a chapter. Its offset and the sizes of its parts are known.
func (r *row) encodeHead(h Header) []byte {
	b := make([]byte, 1, 64)
	b = binary.AppendUvarint(b, r.commit-h.FirstCommit)
	b = binary.AppendUvarint(b, uint64(r.id))
	b = binary.AppendUvarint(b, r.body)
	b = binary.AppendUvarint(b, uint64(r.until))
	b = appendRow(b, r, &row{})
	b[0] = byte(len(b) - 1)
	return binary.LittleEndian.AppendUint32(b, crc32.Update(h.headStart(r.offset), castagnoli, b))
}

// decodeHead reads the head at the start of bytes that are at an offset of the pack. It returns
// false if there is none.
func decodeHead(b []byte, offset int64, h Header) (r row, ok bool) {
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
	r.commit, r.id, r.body, r.until = commit, uint32(id), body, int64(until)
	r.offset, r.head = offset, int64(end)+4
	last := commit + uint64(r.commits) - 1
	if err != nil || v.Bad || len(v.Rest) > 0 || last > h.LastCommit || !r.possible(h) {
		return r, false
	}
	r.layOut()
	return r, true
}
