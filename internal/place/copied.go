package place

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Copy is the original of a copied message. It says the same, but its line has another id or time.
type Copy struct {
	Body, Metadata []byte
}

// originals reads messages as they were given.
type originals struct {
	ctx   context.Context
	from  backend.Reader
	forms *form.Reader // nil until the first copy
}

// compare compares a message with a span of another thread that follows the same span. It returns nil if the
// message is not a copy of it.
func (o *originals) compare(m *Message, span *structure.Span) (*Copy, error) {
	if !saysTheSame(m.Usages, span.Usages, m.Record) {
		return nil, nil
	}
	if o.forms == nil {
		o.forms = form.NewReader(o.from)
	}
	c := &Copy{Body: m.Body}
	if m.Record {
		was, err := o.original(span)
		if err != nil || !differInLines(m.Body, was) {
			return nil, err
		}
		c.Body = was
	}
	u, was := &m.Usages[0], &span.Usages[0]
	if u.MetadataContent == was.MetadataContent && bytes.Equal(u.Metadata, was.Metadata) {
		c.Metadata = m.metadata()
		return c, nil
	}
	before, err := o.forms.Metadata(o.ctx, was)
	if err != nil || !differInLines(m.metadata(), before) {
		return nil, err
	}
	c.Metadata = before
	return c, nil
}

// original returns the message of a span as it was given, or nil if part of it is gone.
func (o *originals) original(span *structure.Span) ([]byte, error) {
	for step, err := range o.from.Path(o.ctx, span.Ref, structure.Window{Last: 1}, backend.PathOptions{Bodies: true}) {
		if err != nil {
			return nil, err
		}
		m, err := o.forms.Message(o.ctx, step, 0)
		if err != nil {
			return nil, err
		}
		whole, err := o.forms.Original(o.ctx, m)
		if errors.Is(err, backend.ErrErased) || errors.Is(err, backend.ErrNotFound) {
			return nil, nil
		}
		return whole, err
	}
	return nil, nil
}

// saysTheSame reports whether two messages are equal apart from metadata and the ids and times of their lines. Of
// records, only the substitute for their body is compared.
func saysTheSame(a, b []structure.Usage, record bool) bool {
	if a[0].Role != b[0].Role || a[0].Name != b[0].Name || a[0].By.ModelID != b[0].By.ModelID {
		return false
	}
	if record {
		return len(b) == form.End(b, 0)
	}
	return slices.EqualFunc(a, b, func(x, y structure.Usage) bool {
		return x.Kind == y.Kind && x.Piece == y.Piece && x.Content == y.Content && x.Form == y.Form && x.Opaque == y.Opaque &&
			x.Role == y.Role && x.Name == y.Name && x.Document == y.Document && x.Revision == y.Revision && x.Filename == y.Filename &&
			slices.EqualFunc(x.Extras, y.Extras, bytes.Equal)
	})
}

// differInLines reports whether two objects differ only in ids and times of lines.
func differInLines(a, b []byte) bool {
	was, ok := membersOf(b)
	if !ok || !rawjson.IsObject(a) || !rawjson.Valid(a) {
		return false
	}
	for m := range rawjson.Members(a) {
		before, known := was[m.Key]
		if !known || !isOfLine(m.Key, m.Value, before) && !differIn(m.Value, before, 0) {
			return false
		}
		delete(was, m.Key) // an object with a repeated key is not a copy
	}
	return len(was) == 0
}

// membersOf returns the members of an object, or false if it repeats a key.
func membersOf(raw []byte) (map[string][]byte, bool) {
	if !rawjson.IsObject(raw) || !rawjson.Valid(raw) {
		return nil, false
	}
	members := make(map[string][]byte)
	for m := range rawjson.Members(raw) {
		if _, twice := members[m.Key]; twice {
			return nil, false
		}
		members[m.Key] = m.Value
	}
	return members, true
}

// isOfLine reports whether both values under a key are ids of lines or null.
func isOfLine(key string, a, b []byte) bool {
	isID := func(v []byte) bool {
		return rawjson.IsNull(v) || rawjson.IsString(v) && len(v) <= maxLineID && form.IsQuiet(key, v)
	}
	switch key {
	case "id", "parentId", "uuid", "parentUuid":
		return isID(a) && isID(b)
	}
	return false
}

// maxLineID is the maximum size of an id of a line, with its quotes.
const maxLineID = 66

// maxNested is how deeply values are compared.
const maxNested = 32

// differIn reports whether two values differ only in UUIDs and times.
func differIn(a, b []byte, depth int) bool {
	switch {
	case bytes.Equal(a, b):
		return true
	case len(a) == 0 || len(b) == 0 || a[0] != b[0] || depth == maxNested:
		return false
	case a[0] == '"':
		return isUUID(a) && isUUID(b) || isTime(a) && isTime(b)
	case a[0] == '{':
		var members []rawjson.Member
		for m := range rawjson.Members(b) {
			members = append(members, m)
		}
		n := 0
		for m := range rawjson.Members(a) {
			if n == len(members) || m.Key != members[n].Key || !differIn(m.Value, members[n].Value, depth+1) {
				return false
			}
			n++
		}
		return n == len(members)
	case a[0] == '[':
		var elements [][]byte
		for e := range rawjson.Elements(b) {
			elements = append(elements, e)
		}
		n := 0
		for e := range rawjson.Elements(a) {
			if n == len(elements) || !differIn(e, elements[n], depth+1) {
				return false
			}
			n++
		}
		return n == len(elements)
	}
	return false
}

// isUUID reports whether a JSON string is a UUID.
func isUUID(quoted []byte) bool {
	if len(quoted) != 38 {
		return false
	}
	for i, c := range quoted[1:37] {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return false
			}
		}
	}
	return true
}

// isTime reports whether a JSON string is a time.
func isTime(quoted []byte) bool {
	if len(quoted) < 20 || len(quoted) > 40 {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, string(quoted[1:len(quoted)-1]))
	return err == nil
}
