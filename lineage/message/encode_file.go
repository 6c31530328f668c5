package message

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// file returns a file as a part of a message, nil if the dialect does not accept it there.
func (e *encoder) file(p *Part, role string) json.RawMessage {
	if e.to == UI {
		if p.URL == "" || isPlaceholder(p.URL) {
			return nil
		}
		return new(object).text("type", "file").text("mediaType", cmp.Or(p.MediaType, "application/octet-stream")).textIf("filename", p.Filename).text("url", p.URL).bytes()
	}
	if role != "user" && role != "tool" {
		return nil
	}
	switch e.to {
	case OpenAI:
		if role == "user" {
			return chatFile(p)
		}
	case Responses:
		return responsesFile(p)
	case Anthropic:
		return anthropicFile(p)
	}
	return nil
}

// IsImage reports whether a media type is that of an image.
func IsImage(mediaType string) bool { return strings.HasPrefix(mediaType, "image/") }

func chatFile(p *Part) json.RawMessage {
	_, data, isData := base64Of(p.URL)
	switch {
	case IsImage(p.MediaType) && anyURL(quote(p.URL)):
		return new(object).text("type", "image_url").raw("image_url", new(object).text("url", p.URL).bytes()).bytes()
	case !isData:
		return nil
	case p.MediaType == "audio/mpeg" || p.MediaType == "audio/mp3" || p.MediaType == "audio/wav" || p.MediaType == "audio/x-wav":
		format := "wav"
		if strings.HasPrefix(p.MediaType, "audio/mp") {
			format = "mp3"
		}
		return new(object).text("type", "input_audio").raw("input_audio", new(object).text("data", data).text("format", format).bytes()).bytes()
	case p.MediaType == "application/pdf":
		return new(object).text("type", "file").raw("file", new(object).text("filename", cmp.Or(p.Filename, "file.pdf")).text("file_data", p.URL).bytes()).bytes()
	}
	return nil
}

func responsesFile(p *Part) json.RawMessage {
	_, _, isData := base64Of(p.URL)
	switch {
	case IsImage(p.MediaType) && (isData || isWeb(p.URL)):
		return new(object).text("type", "input_image").text("detail", "auto").text("image_url", p.URL).bytes()
	case p.MediaType == "application/pdf" && isData:
		return new(object).text("type", "input_file").text("filename", cmp.Or(p.Filename, "file.pdf")).text("file_data", p.URL).bytes()
	case p.MediaType == "application/pdf" && isWeb(p.URL):
		return new(object).text("type", "input_file").text("file_url", p.URL).bytes()
	}
	return nil
}

func anthropicFile(p *Part) json.RawMessage {
	mediaType, data, isData := base64Of(p.URL)
	source := new(object)
	kind := "document"
	switch {
	case isData && anthropicImages.accepts(quote(mediaType)):
		kind = "image"
		source.text("type", "base64").text("media_type", mediaType).text("data", data)
	case isData && mediaType == "application/pdf":
		source.text("type", "base64").text("media_type", mediaType).text("data", data)
	case isWeb(p.URL) && IsImage(p.MediaType):
		kind = "image"
		source.text("type", "url").text("url", p.URL)
	case isWeb(p.URL) && p.MediaType == "application/pdf":
		source.text("type", "url").text("url", p.URL)
	default:
		text, ok := textIn(p.URL)
		if !ok || !strings.HasPrefix(p.MediaType, "text/") || isBlank(text) {
			return nil
		}
		source.text("type", "text").text("media_type", "text/plain").text("data", text)
	}
	o := new(object).text("type", kind).raw("source", source.bytes())
	if kind == "document" {
		o.textIf("title", p.Filename)
	}
	return o.bytes()
}

// textIn returns the text in a data: URL.
func textIn(from string) (string, bool) {
	if _, data, ok := base64Of(from); ok {
		text, err := base64.StdEncoding.DecodeString(data)
		return string(text), err == nil
	}
	rest, ok := strings.CutPrefix(from, "data:")
	_, data, found := strings.Cut(rest, ",")
	if !ok || !found {
		return "", false
	}
	text, err := url.PathUnescape(data)
	return text, err == nil
}

// outputs returns the result of a call as parts of the dialect, and also as text if it is only
// text.
func (e *encoder) outputs(u *unit) (text string, parts []json.RawMessage) {
	onlyText := true
	for k := range u.p.Output {
		o := &u.p.Output[k]
		onlyText = onlyText && (o.Kind == TextKind || o.Kind == DataKind || o.Kind == ReasoningKind)
	}
	if onlyText || e.to == OpenAI {
		for k := range u.p.Output {
			if o := &u.p.Output[k]; o.Kind == FileKind {
				e.lose(u, "no place for %s in a result: written as text", o.Label())
			}
		}
		return u.p.OutputText(), nil
	}
	for k := range u.p.Output {
		o := &u.p.Output[k]
		if o.Kind == FileKind {
			if raw := e.file(o, "tool"); raw != nil {
				parts = append(parts, raw)
				continue
			}
			e.lose(u, "no place for %s in a result: written as text", o.Label())
		}
		if s := o.String(); !isBlank(s) {
			parts = append(parts, e.newText(s, "tool"))
		}
	}
	return "", parts
}

// inputObject returns the input of a call as an object.
func (p *Part) inputObject() json.RawMessage {
	switch {
	case p.Input == nil && p.Text == "":
		return json.RawMessage("{}")
	case p.Input == nil:
		return new(object).text("input", p.Text).bytes()
	case !rawjson.IsObject(p.Input):
		return new(object).raw("input", p.Input).bytes()
	}
	return p.Input
}

// arguments returns the input of a call as a string of JSON.
func (p *Part) arguments() json.RawMessage {
	if p.Input == nil {
		return quote(string(p.inputObject()))
	}
	return quote(string(p.Input))
}

// newText returns a text part.
func (e *encoder) newText(text, role string) json.RawMessage {
	kind := "text"
	if e.to == Responses {
		kind = "input_text"
	}
	return new(object).text("type", kind).text("text", text).bytes()
}
