package export

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

// openAI writes a line for each history.
func (x *exporter) openAI(ctx context.Context) error {
	for conv, err := range x.conversations(ctx) {
		if err != nil {
			return err
		}
		tools, err := x.field(ctx, conv, "tools")
		if err != nil {
			return err
		}
		err = x.histories(ctx, conv, func(history history) error {
			x.put(`{"messages":[`)
			first := true
			for e, err := range history {
				if err != nil {
					return err
				}
				messages, err := x.openAIMessages(ctx, e)
				if err != nil {
					return err
				}
				for _, m := range messages {
					if !first {
						x.put(",")
					}
					first = false
					x.put(m)
				}
				if err := x.failed(); err != nil {
					return err
				}
			}
			x.put("]")
			if len(tools) > 0 && tools[0] == '[' {
				x.put(`,"tools":`, compact(tools))
			}
			x.put("}\n")
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// maxFields is how far a log is searched for a field: fields come first in it.
const maxFields = 64

// field returns a field of a conversation that an import kept, nil if there is
// none of that name.
func (x *exporter) field(ctx context.Context, conv *conversation, name string) (json.RawMessage, error) {
	if v := member(conv.info.Metadata, name); v != nil {
		return v, nil
	}
	for _, tip := range conv.beside {
		for e, err := range x.store.History(ctx, tip, lineage.Window{To: maxFields}) {
			if err != nil {
				return nil, err
			}
			if e.Role == "field" && e.Name == name && e.Type == content.TypeJSON && !e.Erased {
				body, ok, err := x.body(ctx, e)
				if err != nil || ok && json.Valid(body) {
					return body, err
				}
			}
		}
	}
	return nil, nil
}

// openAIContent lists what a message says, in the order in which a message of
// this format is stored; everything else about it is metadata.
var openAIContent = []string{"content", "refusal", "reasoning_content", "tool_calls", "function_call", "audio"}

// openAIMessages returns an entry as messages: several if it holds a tool's
// answer beside other things, which this format keeps apart.
func (x *exporter) openAIMessages(ctx context.Context, e *lineage.Entry) ([]string, error) {
	body, err := x.mustBody(ctx, e)
	if err != nil {
		return nil, err
	}
	switch {
	case e.Erased:
		return []string{openAIMessage(e, e.Role, "content", quote(erased))}, nil
	case e.Kind == lineage.Asset:
		return []string{openAIMessage(e, "user", "content", openAIAsset(e, body))}, nil
	case e.Kind == lineage.Document:
		return []string{openAIMessage(e, "user", "content", quote(string(body)))}, nil
	case e.Type != content.TypeJSON:
		return []string{openAIMessage(e, e.Role, "content", quote(string(body)))}, nil
	}
	if fields := openAINative(body); fields != nil {
		return []string{openAIMessage(e, e.Role, fields...)}, nil
	}
	if some, ok := structured(body, 0); ok {
		return openAITranslated(e, some), nil
	}
	return []string{openAIMessage(e, e.Role, "content", quote(string(body)))}, nil
}

// openAINative returns the members that say what a message of this format says;
// nil if the body is of another.
func openAINative(body []byte) []string {
	trimmed := bytes.TrimSpace(body)
	if isQuoted(trimmed) {
		return []string{"content", string(trimmed)}
	}
	if len(trimmed) > 0 && trimmed[0] == '[' {
		var parts []object
		if json.Unmarshal(body, &parts) != nil {
			return nil
		}
		for _, p := range parts {
			switch p.text("type") {
			case "text":
				if len(p) != 2 {
					return nil
				}
			case "image_url", "input_audio", "refusal":
			default:
				return nil
			}
		}
		return []string{"content", compact(body)}
	}
	var o object
	if json.Unmarshal(body, &o) != nil || len(o) == 0 {
		return nil
	}
	var fields []string
	for _, name := range openAIContent {
		if o.has(name) {
			fields = append(fields, name, compact(o[name]))
		}
	}
	if len(fields) != 2*len(o) {
		return nil
	}
	var calls []object
	if o.has("tool_calls") && json.Unmarshal(o["tool_calls"], &calls) != nil {
		return nil
	}
	for _, c := range calls {
		if !c.has("function") {
			return nil
		}
	}
	return fields
}

// isQuoted reports whether a body is a JSON string, as is kept of text that is not
// Unicode.
func isQuoted(body []byte) bool { return len(body) > 0 && body[0] == '"' && json.Valid(body) }

// openAITranslated writes a message of another format's in this one's terms.
func openAITranslated(e *lineage.Entry, some []piece) []string {
	var out, said, calls []string
	var reasoning []string
	for _, p := range some {
		switch p.kind {
		case textPiece:
			said = append(said, p.text)
		case reasoningPiece:
			reasoning = append(reasoning, p.text)
		case mediaPiece:
			said = append(said, "["+mediaLabel(p)+"]")
		case callPiece:
			id := p.id
			if id == "" {
				id = "call_" + strconv.Itoa(len(calls)+1)
			}
			calls = append(calls, `{"id":`+quote(id)+`,"type":"function","function":{"name":`+quote(p.name)+`,"arguments":`+quote(p.text)+`}}`)
		case resultPiece:
			m := `{"role":"tool","content":` + quote(p.text)
			if p.id != "" {
				m += `,"tool_call_id":` + quote(p.id)
			}
			out = append(out, m+"}")
		}
	}
	if len(said)+len(calls)+len(reasoning) == 0 {
		if len(out) == 0 {
			out = append(out, openAIMessage(e, e.Role, "content", `""`))
		}
		return out
	}
	text := `""`
	if len(said) > 0 {
		text = quote(strings.Join(said, "\n\n"))
	} else if len(calls) > 0 {
		text = "null"
	}
	fields := []string{"content", text}
	if len(reasoning) > 0 {
		fields = append(fields, "reasoning_content", quote(strings.Join(reasoning, "\n\n")))
	}
	role := e.Role
	if len(calls) > 0 {
		// A step in which a tool was called and answered is the model's, then the tool's.
		role = "assistant"
		fields = append(fields, "tool_calls", "["+strings.Join(calls, ",")+"]")
		return append([]string{openAIMessage(e, role, fields...)}, out...)
	}
	return append(out, openAIMessage(e, role, fields...))
}

// openAIMessage writes a message of a role with the given members and what the
// format has a place for beside them.
func openAIMessage(e *lineage.Entry, role string, fields ...string) string {
	var b strings.Builder
	b.WriteString(`{"role":` + quote(role))
	for i := 0; i+1 < len(fields); i += 2 {
		b.WriteString("," + quote(fields[i]) + ":" + fields[i+1])
	}
	if e.Kind == lineage.Message && e.Name != "" && e.Name != e.Role {
		b.WriteString(`,"name":` + quote(e.Name))
	}
	for _, name := range []string{"tool_call_id", "weight"} {
		if v := member(e.Metadata, name); v != nil {
			b.WriteString("," + quote(name) + ":" + compact(v))
		}
	}
	return b.String() + "}"
}

// openAIAsset returns the content of a message that shows an asset.
func openAIAsset(e *lineage.Entry, body []byte) string {
	if strings.HasPrefix(e.Type, "image/") {
		url := "data:" + e.Type + ";base64," + base64.StdEncoding.EncodeToString(body)
		return `[{"type":"image_url","image_url":{"url":` + quote(url) + `}}]`
	}
	return quote("[" + assetLabel(e) + "]")
}

func assetLabel(e *lineage.Entry) string {
	return fmt.Sprintf("file %s, %s, %d bytes", e.Filename, e.Type, e.Size)
}

func mediaLabel(p piece) string {
	label := p.mediaType
	if label == "" {
		label = "media"
	}
	switch {
	case p.name != "":
		label += " " + p.name
	case p.url != "" && !strings.HasPrefix(p.url, "data:"):
		label += " " + p.url
	}
	return label
}

// member returns a member of a JSON object, nil if it has none of that name.
func member(metadata []byte, name string) json.RawMessage {
	if !bytes.Contains(metadata, []byte(name)) {
		return nil // the usual case, which should cost little
	}
	var o object
	if json.Unmarshal(metadata, &o) != nil {
		return nil
	}
	return o[name]
}

// compact returns valid JSON on one line, its strings and numbers as they were.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return "null"
	}
	return b.String()
}

// quote returns text as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func quote(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text)
	return strings.TrimSuffix(b.String(), "\n")
}
