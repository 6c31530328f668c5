package export

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

// pieceKind tells what a piece of a message is.
type pieceKind int

const (
	textPiece pieceKind = iota
	reasoningPiece
	callPiece   // name, id, text is its arguments
	resultPiece // id, text
	mediaPiece  // mediaType, url or name
)

// piece is a part of a message as people see it, whatever shape the message is
// stored in.
type piece struct {
	kind      pieceKind
	text      string
	name, id  string
	mediaType string
	url       string
}

// maxNesting bounds how deeply parts are looked for inside parts.
const maxNesting = 6

// pieces reads a body. What is of no known shape is a piece of text.
func pieces(e *lineage.Entry, body []byte) []piece {
	if e.Erased {
		return []piece{{text: erased}}
	}
	if e.Type == content.TypeJSON && e.Kind == lineage.Message {
		if out, ok := structured(body, 0); ok {
			return out
		}
	}
	return []piece{{text: string(body)}}
}

// structured reads JSON of the shapes in which chat services and SDKs keep
// messages. It reports false for anything else.
func structured(raw json.RawMessage, depth int) ([]piece, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || depth > maxNesting {
		return nil, false
	}
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return nil, false
		}
		if s == "" {
			return nil, true
		}
		return []piece{{text: s}}, true
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return nil, false
		}
		var out []piece
		for _, one := range list {
			some, ok := structured(one, depth+1)
			if !ok {
				some = []piece{{text: string(one)}}
			}
			out = append(out, some...)
		}
		return out, true
	case '{':
		var o object
		if json.Unmarshal(raw, &o) != nil {
			return nil, false
		}
		return o.pieces(depth)
	case 'n':
		return nil, true
	}
	return nil, false
}

// object is a JSON object read member by member, so that one of an unexpected
// kind spoils nothing but itself.
type object map[string]json.RawMessage

func (o object) text(name string) string {
	var s string
	if json.Unmarshal(o[name], &s) != nil {
		return ""
	}
	return s
}

func (o object) first(names ...string) string {
	for _, n := range names {
		if s := o.text(n); s != "" {
			return s
		}
	}
	return ""
}

// argument returns a member as the JSON text of a tool's arguments, which some
// formats keep as a string and others as an object.
func (o object) argument(name string) string {
	if s := o.text(name); s != "" {
		return s
	}
	return string(o[name])
}

func (o object) has(name string) bool {
	_, ok := o[name]
	return ok
}

// flat returns what a member says, as text.
func (o object) flat(name string, depth int) string {
	some, ok := structured(o[name], depth+1)
	if !ok {
		return string(o[name])
	}
	return join(some)
}

func join(some []piece) string {
	var said []string
	for _, p := range some {
		if p.text != "" {
			said = append(said, p.text)
		}
	}
	return strings.Join(said, "\n\n")
}

func (o object) pieces(depth int) ([]piece, bool) {
	kind := o.first("type", "content_type")
	switch {
	case o.has("text") && (kind == "text" || kind == "input_text" || kind == "output_text" || kind == "summary_text"):
		return []piece{{text: o.text("text")}}, true
	case kind == "refusal":
		return []piece{{text: o.text("refusal")}}, true
	case kind == "thinking" || kind == "reasoning" || kind == "reasoning_text":
		text := o.first("thinking", "text")
		if text == "" {
			text = join([]piece{{text: o.flatOr("summary", depth)}, {text: o.flatOr("content", depth)}})
		}
		return []piece{{kind: reasoningPiece, text: text}}, true
	case kind == "tool_use" || kind == "server_tool_use":
		return []piece{{kind: callPiece, name: o.text("name"), id: o.text("id"), text: o.argument("input")}}, true
	case kind == "function_call" || kind == "custom_tool_call":
		arguments := "arguments"
		if !o.has(arguments) {
			arguments = "input"
		}
		return []piece{{kind: callPiece, name: o.text("name"), id: o.first("call_id", "id"), text: o.argument(arguments)}}, true
	case kind == "tool_result" || strings.HasSuffix(kind, "_tool_result"):
		return []piece{{kind: resultPiece, id: o.text("tool_use_id"), text: o.flat("content", depth)}}, true
	case kind == "function_call_output" || kind == "custom_tool_call_output":
		return []piece{{kind: resultPiece, id: o.text("call_id"), text: o.flat("output", depth)}}, true
	case kind == "function" && o.has("function"):
		return []piece{o.call()}, true
	case kind == "image_url" || kind == "image" || kind == "input_image" || kind == "image_asset_pointer" || kind == "file" || kind == "document":
		return []piece{o.media()}, true
	case kind == "dynamic-tool" || strings.HasPrefix(kind, "tool-"):
		return o.uiTool(kind, depth), true
	case kind == "step-start":
		return nil, true
	case o.has("parts"):
		return structured(o["parts"], depth+1)
	case o.has("tool_calls") || o.has("function_call"):
		return o.calls(depth), true
	case o.has("content"):
		return structured(o["content"], depth+1)
	case kind != "" && o.has("text"):
		return []piece{{text: o.text("text")}}, true
	}
	return nil, false
}

func (o object) flatOr(name string, depth int) string {
	if !o.has(name) {
		return ""
	}
	return o.flat(name, depth)
}

// calls reads a message that calls tools, as chat endpoints have it.
func (o object) calls(depth int) []piece {
	var out []piece
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if s := o.text(name); s != "" {
			out = append(out, piece{kind: reasoningPiece, text: s})
		}
	}
	if o.has("content") {
		if said := o.flat("content", depth); said != "" {
			out = append(out, piece{text: said})
		}
	}
	var list []object
	if json.Unmarshal(o["tool_calls"], &list) == nil {
		for _, c := range list {
			out = append(out, c.call())
		}
	}
	if o.has("function_call") {
		var c object
		if json.Unmarshal(o["function_call"], &c) == nil && c != nil {
			out = append(out, piece{kind: callPiece, name: c.text("name"), text: c.argument("arguments")})
		}
	}
	return out
}

// call reads {id, function{name, arguments}}, or {id, name, args}.
func (o object) call() piece {
	var f object
	if json.Unmarshal(o["function"], &f) != nil || f == nil {
		f = o
	}
	arguments := "arguments"
	if !f.has(arguments) {
		arguments = "args"
	}
	return piece{kind: callPiece, name: f.text("name"), id: o.text("id"), text: f.argument(arguments)}
}

// uiTool reads a tool part of a message of parts: the call and, once it is
// there, what came of it.
func (o object) uiTool(kind string, depth int) []piece {
	name := strings.TrimPrefix(kind, "tool-")
	if kind == "dynamic-tool" {
		name = o.text("toolName")
	}
	id := o.text("toolCallId")
	out := []piece{{kind: callPiece, name: name, id: id, text: o.argument("input")}}
	switch {
	case o.text("errorText") != "":
		out = append(out, piece{kind: resultPiece, id: id, text: o.text("errorText")})
	case o.has("output"):
		out = append(out, piece{kind: resultPiece, id: id, text: o.flat("output", depth)})
	}
	return out
}

func (o object) media() piece {
	p := piece{
		kind: mediaPiece, mediaType: o.first("mediaType", "media_type", "mime_type"),
		url: o.first("url", "image_url", "asset_pointer"), name: o.first("filename", "file_name", "name", "title"),
	}
	for _, inner := range []string{"image_url", "source", "file"} {
		var in object
		if json.Unmarshal(o[inner], &in) != nil || in == nil {
			continue
		}
		if p.mediaType == "" {
			p.mediaType = in.text("media_type")
		}
		if p.url == "" {
			p.url = in.first("url", "file_data")
		}
		if data := in.text("data"); p.url == "" && data != "" && in.text("type") == "base64" {
			p.url = "data:" + p.mediaType + ";base64," + data
		}
		if p.name == "" {
			p.name = in.first("filename", "file_id")
		}
	}
	return p
}
