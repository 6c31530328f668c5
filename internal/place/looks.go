package place

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// appendLooks appends everything that a reader can see of a message: content and form, role, names, id, times, model,
// user and metadata. Equal bytes are equal messages. A message without a user or time equals one with those of the
// thread, and one without a type and origin is text with the origin of its role.
func appendLooks(b []byte, usages []structure.Usage, of *structure.Thread) []byte {
	for i := range usages {
		u := &usages[i]
		b = appendNumber(b, int64(u.Kind)|int64(u.Piece)<<8)
		b = append(b, u.Content[:]...)
		b = append(b, u.Form[:]...)
		b = append(b, u.MetadataContent[:]...)
		b = appendNumber(b, int64(len(u.Extras)))
		for _, extra := range u.Extras {
			b = appendBytes(b, extra)
		}
		if u.Kind == structure.PartUsage {
			b = appendText(b, u.Name)
			continue // the message states the rest
		}
		mediaType := u.Type
		if mediaType == content.TypeText || !u.Form.IsZero() {
			mediaType = ""
		}
		for _, s := range [...]string{u.Role, u.Name, u.Document, u.Filename, mediaType, u.SourceID} {
			b = appendText(b, s)
		}
		b = appendNumber(b, int64(u.Revision))
		o := u.OriginWith(content.BlockOrigin{})
		if o.UserID == of.UserID {
			o.UserID = ""
		}
		created := u.CreatedAt
		if created.Equal(of.CreatedAt) {
			created = time.Time{}
		}
		if o.Kind == kindOf(usages) {
			o.Kind = content.OriginUnknown
		}
		b = appendNumber(b, int64(o.Kind))
		b = appendText(b, o.UserID)
		b = appendText(b, o.ModelID)
		b = appendText(b, o.SourceID)
		b = append(b, o.ParentID[:]...)
		b = appendTime(b, created)
		b = appendBytes(b, u.Metadata)
	}
	return b
}

// kindOf is the kind of origin of a message that states no other.
func kindOf(usages []structure.Usage) content.OriginKind {
	return content.OriginOfRole(usages[0].Role)
}

// saySame reports whether two messages have the same id, and equal contents and metadata. Another export may serialize the
// object of the same message differently or with further members.
func saySame(a, b []structure.Usage) bool {
	if a[0].SourceID == "" {
		return false
	}
	said := func(u structure.Usage) bool { return u.Kind == structure.PartUsage && u.Piece == structure.DataPiece }
	i, k := 0, 0
	for {
		for i < len(a) && said(a[i]) {
			i++
		}
		for k < len(b) && said(b[k]) {
			k++
		}
		if i == len(a) || k == len(b) {
			return i == len(a) && k == len(b)
		}
		x, y := &a[i], &b[k]
		if x.Kind != y.Kind || x.Piece != y.Piece || x.Content != y.Content || x.Role != y.Role || x.Name != y.Name || x.Document != y.Document ||
			x.Filename != y.Filename || x.SourceID != y.SourceID || x.Revision != y.Revision || !slices.Equal(x.Metadata, y.Metadata) || x.MetadataContent != y.MetadataContent {
			return false
		}
		i, k = i+1, k+1
	}
}

// Fields are encoded with their lengths.

func appendText(b []byte, s string) []byte { return append(appendNumber(b, int64(len(s))), s...) }

func appendBytes(b, s []byte) []byte { return append(appendNumber(b, int64(len(s))), s...) }

func appendNumber(b []byte, n int64) []byte { return binary.AppendVarint(b, n) }

// appendTime appends a time with the precision that is stored. The zero time differs from all others.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return appendNumber(b, -1<<62)
	}
	return appendNumber(b, t.UnixMilli())
}
