package page

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"net/http"
	"strings"
)

//go:embed templates static
var files embed.FS

// asset is a static file of the page. Its path contains a hash of its content.
type asset struct {
	path, mediaType string
	body            []byte
}

func newAsset(name, mediaType string) (asset, error) {
	body, err := files.ReadFile("static/" + name)
	a := asset{path: "/" + name, mediaType: mediaType}
	a.add(string(body))
	return a, err
}

func (a *asset) add(text string) {
	a.body = append(a.body, text...)
	path, _, _ := strings.Cut(a.path, "?")
	a.path = fmt.Sprintf("%s?%x", path, sha256.Sum256(a.body))[:len(path)+17]
}

func (a asset) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.mediaType)
	h.Set("Cache-Control", "private, max-age=31536000, immutable")
	_, _ = w.Write(a.body) // the browser has gone
}
