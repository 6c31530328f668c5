package transcript

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
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
		for _, said := range message.Decode(m.Body, readAs(mediaType(m)), m.Role) {
			r.said(&said)
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

// flags are the facts about a message in its metadata.
type flags struct {
	// program is set if a program wrote the texts of a user. summary is set if the texts summarize the history
	// before.
	program, summary bool
	result           []byte // what a program recorded about the result in the message
}

func flagsOf(metadata []byte) flags {
	if len(metadata) == 0 || !rawjson.IsObject(metadata) || rawjson.Check(metadata) != nil {
		return flags{}
	}
	return flags{
		program: rawjson.IsTrue(rawjson.Get(metadata, "isMeta")) || rawjson.Get(metadata, "subtype") != nil,
		summary: rawjson.IsTrue(rawjson.Get(metadata, "isCompactSummary")),
		result:  rawjson.Get(metadata, "toolUseResult"),
	}
}

// reader collects the items of a message.
type reader struct {
	m     *Message
	o     Options
	meta  flags
	items []*Item
}

// add adds a text, unless it is blank.
func (r *reader) add(kind Kind, text string) *Item {
	if strings.TrimSpace(text) == "" {
		return &Item{}
	}
	i := &Item{Kind: kind, From: r.m}
	i.Text, i.Left = r.o.cut(text)
	r.items = append(r.items, i)
	return i
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
			r.items = append(r.items, &Item{Kind: Call, From: r.m, Call: newCall(p, r.o)})
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

// kinds maps the roles of all formats to the kinds of their texts.
var kinds = map[string]Kind{
	"user": Prompt, "human": Prompt, "prompter": Prompt,
	"assistant": Answer, "model": Answer, "ai": Answer, "gpt": Answer, "bot": Answer, "chatgpt": Answer,
	"system": Instruction, "developer": Instruction,
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

// fileOf describes a file in a message.
func fileOf(p *message.Part) *FileInfo {
	f := &FileInfo{Kind: fileKind(p.MediaType), Name: p.Filename, Type: strings.TrimSuffix(p.MediaType, "/*"), URL: p.URL}
	if !strings.Contains(f.Type, "/") {
		f.Type = "" // only the kind is known
	}
	f.Name = cmp.Or(f.Name, p.FileID)
	head, data, found := strings.Cut(p.URL, ",")
	switch {
	case !strings.HasPrefix(p.URL, "data:") || !found:
	case strings.HasSuffix(head, ";base64"):
		f.Size = int64(len(strings.TrimRight(data, "=")) * 3 / 4)
	default:
		f.Size = int64(len(data) - 2*strings.Count(data, "%"))
	}
	return f
}

// fileKind returns the kind of a file by its media type.
func fileKind(mediaType string) string {
	switch kind, _, _ := strings.Cut(mediaType, "/"); kind {
	case "image", "audio", "video":
		return kind
	}
	return "file"
}

// String returns a short description of a file: "image a.png, image/png, 1200 bytes".
func (f *FileInfo) String() string {
	said := f.Kind
	if f.Name != "" {
		said += " " + f.Name
	} else if f.URL != "" && !strings.HasPrefix(f.URL, "data:") {
		said += " " + f.URL
	}
	if f.Type != "" {
		said += ", " + f.Type
	}
	if f.Size > 0 {
		said += fmt.Sprintf(", %d bytes", f.Size)
	}
	return said
}
