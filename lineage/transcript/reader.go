package transcript

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/message"
)

// flags are the facts about a message in its metadata.
type flags struct {
	// program is set if a program wrote the texts of a user. summary is set if the texts summarize the history
	// before.
	program, summary bool
	result           []byte // what a program recorded about the result in the message
	rounds           map[string]round
}

func flagsOf(metadata []byte) flags {
	if len(metadata) == 0 || !rawjson.IsObject(metadata) || rawjson.Check(metadata) != nil {
		return flags{}
	}
	return flags{
		program: rawjson.IsTrue(rawjson.Get(metadata, "isMeta")) || rawjson.Get(metadata, "subtype") != nil,
		summary: rawjson.IsTrue(rawjson.Get(metadata, "isCompactSummary")),
		result:  rawjson.Get(metadata, "toolUseResult"),
		rounds:  roundsOf(metadata),
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
	text = Uncoloured(text)
	if strings.TrimSpace(text) == "" {
		return &Item{}
	}
	i := &Item{Kind: kind, From: r.m}
	i.Text, i.Left = r.o.cut(text)
	r.items = append(r.items, i)
	return i
}

// kinds maps the roles of all formats to the kinds of their texts.
var kinds = map[string]Kind{
	"user": Prompt, "human": Prompt, "prompter": Prompt,
	"assistant": Answer, "model": Answer, "ai": Answer, "gpt": Answer, "bot": Answer, "chatgpt": Answer,
	"system": Instruction, "developer": Instruction,
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
	text := f.Kind
	if f.Name != "" {
		text += " " + f.Name
	} else if f.URL != "" && !strings.HasPrefix(f.URL, "data:") {
		text += " " + f.URL
	}
	if f.Type != "" {
		text += ", " + f.Type
	}
	if f.Size > 0 {
		text += fmt.Sprintf(", %d bytes", f.Size)
	}
	return text
}
