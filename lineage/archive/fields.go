package archive

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/lineage-store/lineage/structure"
)

// fieldHash hashes fields with their lengths.
type fieldHash struct{ buf []byte }

func (h *fieldHash) text(s string) {
	h.number(int64(len(s)))
	h.buf = append(h.buf, s...)
}

func (h *fieldHash) bytes(b []byte) {
	h.number(int64(len(b)))
	h.buf = append(h.buf, b...)
}

func (h *fieldHash) number(n int64) { h.buf = binary.AppendVarint(h.buf, n) }

// time hashes a time with the stored precision. The zero time differs from all others.
func (h *fieldHash) time(t time.Time) {
	if t.IsZero() {
		h.number(-1 << 62)
		return
	}
	h.number(t.UnixMilli())
}

// mark returns a number that distinguishes a message from others by its id, content and metadata, but not by the way
// in which these are serialized.
func (h *fieldHash) mark(before uint32, usages []structure.Usage) uint32 {
	h.buf = h.buf[:0]
	for i := range usages {
		u := &usages[i]
		if u.Kind == structure.PartUsage && u.Piece == structure.DataPiece {
			continue
		}
		h.bytes(u.Content[:])
		h.text(u.Role)
		h.text(u.SourceID)
		h.bytes(u.Metadata)
		h.bytes(u.MetadataContent[:])
	}
	return crc32.Update(before, crc32.IEEETable, h.buf)
}
