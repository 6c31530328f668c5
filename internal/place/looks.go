package place

import (
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// appendLooks appends everything that a reader can see of a message: content and form, role, names, id, times, model,
// user and metadata. Equal bytes are equal messages. A message without a user or time equals one with those of the
// thread, and one without a type and origin is text with the origin of its role. The usages are those of m or of a span
// that it is compared with. byContent is Rules.ByContent.
func appendLooks(b []byte, m *Message, usages []structure.Usage, byContent bool, t *structure.Thread) []byte {
	byContent = byContent && m.ID != ""
	f := Fields(b)
	for i := range usages {
		u := &usages[i]
		kind := int64(u.Kind) | int64(u.Piece)<<8
		if byContent && u.Opaque { // the type says so otherwise
			kind |= 1 << 16
		}
		f.Number(kind)
		f = append(f, u.Content[:]...)
		f = append(f, u.Form[:]...)
		f = append(f, u.MetadataContent[:]...)
		f.Number(int64(len(u.Extras)))
		for _, extra := range u.Extras {
			f.Bytes(extra)
		}
		if u.Kind == structure.PartUsage {
			f.Text(u.Name)
			continue // the message states the rest
		}
		for _, s := range [...]string{u.Role, u.Name, u.Document, u.Filename, u.SourceID} {
			f.Text(s)
		}
		f.Number(int64(u.Revision))
		f.Bytes(u.Metadata)
		if byContent {
			continue
		}
		mediaType := u.Type
		if mediaType == content.TypeText || !u.Form.IsZero() {
			mediaType = ""
		}
		f.Text(mediaType)
		o := u.OriginWith(content.BlockOrigin{})
		if o.UserID == t.UserID {
			o.UserID = ""
		}
		created := u.CreatedAt
		if created.Equal(t.CreatedAt) {
			created = time.Time{}
		}
		if o.Kind == kindOf(usages) {
			o.Kind = content.OriginUnknown
		}
		f.Number(int64(o.Kind))
		f.Text(o.UserID)
		f.Text(o.ModelID)
		f.Text(o.SourceID)
		f = append(f, o.ParentID[:]...)
		f.Time(created)
	}
	return f
}

// kindOf is the origin kind of a message that does not state one.
func kindOf(usages []structure.Usage) content.OriginKind {
	return content.OriginOfRole(usages[0].Role)
}

// saySame reports whether two messages have the same id and equal contents and metadata. Another export may serialize
// the object of the same message differently, or with more members.
func saySame(a, b []structure.Usage) bool {
	if a[0].SourceID == "" {
		return false
	}
	isData := func(u structure.Usage) bool { return u.Kind == structure.PartUsage && u.Piece == structure.DataPiece }
	i, k := 0, 0
	for {
		for i < len(a) && isData(a[i]) {
			i++
		}
		for k < len(b) && isData(b[k]) {
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
