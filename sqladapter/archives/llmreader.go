package archives

import (
	"context"
	"strings"

	"github.com/lineage-store/lineage/lineage/archive"
)

// llmReader reads a log of the llm tool.
type llmReader struct {
	reader
	fragments map[string]string // cached small fragments, by id
}

// keptFragments and keptFragment limit the cache of fragments, in number and size.
const (
	keptFragments = 1000
	keptFragment  = 64 << 10
)

func (l *llmReader) fragment(ctx context.Context, id any) (string, error) {
	key := row{"id": id}.text("id")
	if s, ok := l.fragments[key]; ok {
		return s, l.take(int64(len(s)))
	}
	s := ""
	if !l.has("fragments", "id", "content") {
		return s, nil
	}
	err := l.each(ctx, `SELECT `+l.list("fragments", "content")+` FROM fragments WHERE id = ?`, []any{id}, func(r row) error {
		s = r.text("content")
		return nil
	})
	if err == nil && len(s) <= keptFragment && len(l.fragments) < keptFragments {
		l.fragments[key] = s
	}
	return s, err
}

// kept returns a column as a metadata value, nil if it is empty.
func (l *llmReader) kept(v any, isJSON bool) (any, error) {
	r := row{"v": v}
	s := r.text("v")
	switch v.(type) {
	case int64, float64:
		isJSON = true
	default:
		if s == "" || s == "{}" || s == "null" {
			return nil, nil
		}
	}
	if isJSON {
		packed, err := decodeJSON(&l.item, []byte(s))
		if err == nil || isLimit(err) {
			return packed, err
		}
	}
	return cleanText([]byte(s)), nil
}

// attachment returns a file in the database, or else its location. No file outside of the archive
// is ever opened.
func attachment(r row) (*archive.Attachment, fields) {
	if b, ok := r["content"].([]byte); ok && len(b) > 0 {
		name := r.text("path")
		name = name[strings.LastIndexAny(name, `/\`)+1:]
		if name == "" {
			name = r.text("id")
		}
		return &archive.Attachment{Filename: name, Type: r.text("type"), Body: b}, nil
	}
	var place fields
	for _, name := range []string{"id", "type", "path", "url"} {
		if s := r.text(name); s != "" {
			place = append(place, field{name, s})
		}
	}
	return nil, place
}
