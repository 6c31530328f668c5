package transcript

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/lineage/message"
)

// Items returns the items of a message. Results are items of their own; a Pairer puts them into calls.
func Items(m *Message, o Options) []*Item {
	r := reader{m: m, o: o}
	switch {
	case m.Erased:
		r.add(Note, "erased")
	case m.Filename != "":
		r.items = append(r.items, &Item{Kind: File, From: m, File: &FileInfo{Kind: fileKind(m.Type), Name: m.Filename, Type: m.Type, Size: max(m.Size, int64(len(m.Body)))}})
	case m.Body == nil && m.Size > 0:
		r.add(Note, fmt.Sprintf("%s, %d bytes", mediaType(m), m.Size))
	case m.Document != "":
		r.add(Text, string(m.Body))
	default:
		r.meta = flagsOf(m.Metadata)
		for _, decoded := range message.Decode(m.Body, readAs(mediaType(m)), m.Role) {
			r.said(&decoded)
		}
		r.unread()
	}
	return r.items
}

// unread counts the part of a text that was not read.
func (r *reader) unread() {
	n := len(r.items)
	if left := int(r.m.Size) - len(r.m.Body); left > 0 && n > 0 {
		if last := r.items[n-1]; last.Kind == Result {
			last.Result.Left += left
		} else {
			last.Left += left
		}
	}
}

// mediaType returns the media type of a message.
func mediaType(m *Message) string { return cmp.Or(m.Type, "text/plain") }

// readAs returns the media type under which a body is decoded. XML, YAML, TOML and JavaScript
// are plain text.
func readAs(mediaType string) string {
	base, _, _ := strings.Cut(mediaType, ";")
	switch base = strings.TrimSpace(base); {
	case strings.HasSuffix(base, "xml"), strings.HasSuffix(base, "yaml"), strings.HasSuffix(base, "toml"), strings.HasSuffix(base, "javascript"):
		return "text/plain"
	}
	return mediaType
}

// said adds a decoded message. A body can contain several, with roles of their own.
func (r *reader) said(m *message.Message) {
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case message.TextKind:
			r.text(m.Role, p.Text)
		case message.ReasoningKind:
			r.add(Thinking, p.Text)
		case message.CallKind:
			r.items = append(r.items, &Item{Kind: Call, From: r.m, Call: r.meta.rounds[p.CallID].call(p, r.o)})
		case message.ResultKind:
			r.items = append(r.items, &Item{Kind: Result, From: r.m, Result: r.result(p)})
		case message.FileKind:
			r.items = append(r.items, &Item{Kind: File, From: r.m, File: fileOf(p)})
		case message.DataKind:
			if p.Name != "step-start" { // the AI SDK's mark between steps has no content
				r.add(Data, string(p.Data)).Tag = p.Name
			}
		}
	}
}

// text adds a text of a role.
func (r *reader) text(role, text string) {
	kind, known := kinds[strings.ToLower(role)]
	switch {
	case !known:
		r.add(Text, text)
	case kind == Answer:
		r.add(kind, text)
	case r.meta.summary:
		r.add(Reminder, text).Tag = "summary"
	default:
		r.wrapped(kind, text)
	}
}
