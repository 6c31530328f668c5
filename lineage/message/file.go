package message

import (
	"path"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// file reads the description of a file, in any dialect.
func (p *Part) file(f fields) {
	p.Kind = FileKind
	for _, in := range []fields{f, fieldsOf(f["image_url"]), fieldsOf(f["source"]), fieldsOf(f["file"]), fieldsOf(f["input_audio"]), fieldsOf(f["video_url"])} {
		set := func(to *string, keys ...string) {
			if *to == "" {
				*to = in.first(keys...)
			}
		}
		set(&p.MediaType, "mediaType", "media_type", "mime_type", "mimeType")
		set(&p.Filename, "filename", "file_name", "title")
		set(&p.FileID, "file_id")
		set(&p.URL, "url", "image_url", "file_url", "asset_pointer")
		if data := in.first("data", "file_data", "image"); p.URL == "" && data != "" {
			p.setData(data, in)
		}
	}
	if p.MediaType == "" {
		p.MediaType = guessed(p.URL, p.Filename, f.text("type"))
	}
}

// setData sets the content of a file: a URL, base64, or a text.
func (p *Part) setData(data string, in fields) {
	if format := in.text("format"); p.MediaType == "" && format != "" {
		p.MediaType = "audio/" + format
	}
	switch {
	case strings.HasPrefix(data, "data:") || strings.Contains(data[:min(len(data), 16)], "://"):
		p.URL = data
	case in.text("type") == "text":
		p.URL = textURL(p.MediaType, data)
	default:
		p.URL = "data:" + p.MediaType + ";base64," + data
	}
}

// textURL returns a data: URL with a text.
func textURL(mediaType, text string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.WriteString("data:" + mediaType + ",")
	for i := range len(text) {
		c := text[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.~", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

var typesByEnding = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".svg": "image/svg+xml",
	".pdf": "application/pdf", ".txt": "text/plain", ".md": "text/markdown", ".csv": "text/csv", ".html": "text/html", ".json": "application/json",
	".mp3": "audio/mpeg", ".wav": "audio/wav", ".mp4": "video/mp4",
}

// guessed returns the media type of a file that does not state one.
func guessed(url, filename, kind string) string {
	if rest, ok := strings.CutPrefix(url, "data:"); ok {
		kind, _, _ := strings.Cut(rest, ",")
		kind, _, _ = strings.Cut(kind, ";")
		return kind
	}
	for _, name := range []string{filename, url} {
		name, _, _ = strings.Cut(name, "?")
		if kind := typesByEnding[strings.ToLower(path.Ext(name))]; kind != "" {
			return kind
		}
	}
	switch {
	case strings.Contains(kind, "image"):
		return "image/*"
	case strings.Contains(kind, "audio"):
		return "audio/*"
	}
	return ""
}

// base64Of returns the base64 in a data: URL. ok is false for other URLs.
func base64Of(url string) (mediaType, data string, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", "", false
	}
	head, data, ok := strings.Cut(rest, ",")
	mediaType, ok2 := strings.CutSuffix(head, ";base64")
	if !ok || !ok2 || !isBase64(data) {
		return "", "", false
	}
	mediaType, _, _ = strings.Cut(mediaType, ";")
	return mediaType, data, true
}

func isBase64(s string) bool {
	if s == "" || len(s)%4 != 0 {
		return false
	}
	body := strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	for i := range len(body) {
		c := body[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/') {
			return false
		}
	}
	return true
}

// isWeb reports whether a provider can fetch a URL.
func isWeb(url string) bool {
	rest, ok := strings.CutPrefix(url, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(url, "http://")
	}
	return ok && rest != "" && !strings.ContainsAny(url, " \t\r\n\"<>\\^`{|}") && strings.IndexFunc(url, func(r rune) bool { return r < 0x20 }) < 0
}

// webURL and dataURL are conditions for shapes.
func webURL(raw []byte) bool { return isWeb(rawjson.Str(raw)) }

func anyURL(raw []byte) bool {
	if webURL(raw) {
		return true
	}
	_, _, ok := base64Of(rawjson.Str(raw))
	return ok
}
