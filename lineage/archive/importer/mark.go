package importer

import (
	"hash/crc32"

	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/structure"
)

// fieldHash hashes fields of messages.
type fieldHash struct{ buf place.Fields }

// mark returns a number that distinguishes a message from others by its id, content and metadata. It does not depend
// on how these are serialized.
func (h *fieldHash) mark(before uint32, usages []structure.Usage) uint32 {
	h.buf = h.buf[:0]
	for i := range usages {
		u := &usages[i]
		if u.Kind == structure.PartUsage && u.Piece == structure.DataPiece {
			continue
		}
		h.buf.Bytes(u.Content[:])
		h.buf.Text(u.Role)
		h.buf.Text(u.SourceID)
		h.buf.Bytes(u.Metadata)
		h.buf.Bytes(u.MetadataContent[:])
	}
	return crc32.Update(before, crc32.IEEETable, h.buf)
}
