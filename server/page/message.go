package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/server/attachment"
	"github.com/lineage-store/lineage/structure"
)

const (
	// maxWhole limits the size of a message that is sent unchanged.
	maxWhole = 16 << 20
)

// entriesOf returns the entry that a request names. If a span has several, the index follows the address.
func (p *Page) entriesOf(r *http.Request) (*lineage.Entry, error) {
	t, err := p.threadOf(r)
	if err != nil {
		return nil, err
	}
	seq, rest, _ := strings.Cut(r.PathValue("seq"), ".")
	ref, err := structure.ParseSpanRef(r.PathValue("run") + "/" + seq)
	if err != nil {
		return nil, fmt.Errorf("message %.80q: %w", r.PathValue("run")+"/"+seq, lineage.ErrNotFound)
	}
	index := 0
	if rest != "" {
		if index, err = strconv.Atoi(rest); err != nil {
			return nil, fmt.Errorf("message %v.%.20q: %w", ref, rest, lineage.ErrNotFound)
		}
	}
	if err := p.belongs(r.Context(), t, ref); err != nil {
		return nil, err
	}
	entries, err := p.o.Store.Span(r.Context(), ref)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Index == index {
			return e, nil
		}
	}
	return nil, fmt.Errorf("message %v.%d: %w", ref, index, lineage.ErrNotFound)
}

// message sends the original message as text.
func (p *Page) message(w http.ResponseWriter, r *http.Request) error {
	e, err := p.entriesOf(r)
	if err != nil {
		return err
	}
	if e.Erased && e.Body == nil && len(e.Pieces) == 0 {
		return fmt.Errorf("message %v: %w", e.Span, lineage.ErrErased)
	}
	if e.Size > maxWhole {
		return refuse("The message has %d bytes, which is too much for a page: 'lineage cat %s' prints it.", e.Size, e.Content)
	}
	body, err := p.o.Store.Original(r.Context(), e)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Security-Policy", attachment.Policy)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(body) // the browser has gone
	return nil
}

// imageOf returns a function for the addresses of images of a thread, which consist of the message and the hash of
// the image's address.
func (p *Page) imageOf(thread string) func(*transcript.Message, *transcript.FileInfo) template.URL {
	return func(m *transcript.Message, f *transcript.FileInfo) template.URL {
		if !attachment.Shows(f.Type) && !isShown(f.URL) {
			return ""
		}
		return template.URL("/t/" + thread + "/image/" + m.ID + "/" + hashOf(f)) // ids and hexadecimal digits
	}
}

// isShown reports whether an image with this address may be displayed.
func isShown(address string) bool {
	head, _, found := strings.Cut(strings.TrimPrefix(address, "data:"), ";base64,")
	return found && strings.HasPrefix(address, "data:") && attachment.Shows(head)
}

func hashOf(f *transcript.FileInfo) string {
	return markOf(f.URL + "\x00" + f.Name)
}

// image sends an image of a message. A file that cannot be decoded as an image is sent as a download.
func (p *Page) image(w http.ResponseWriter, r *http.Request) error {
	e, err := p.entriesOf(r)
	if err != nil {
		return err
	}
	m, err := p.o.Store.Transcribe(r.Context(), e, lineage.MostText)
	if err != nil {
		return err
	}
	for _, f := range filesOf(m) {
		if hashOf(f) != r.PathValue("hash") {
			continue
		}
		var body io.ReadSeeker
		tag := sha256.Sum256([]byte(f.URL))
		switch {
		case isShown(f.URL):
			_, text, _ := strings.Cut(f.URL, ",")
			data, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return refuse("The image cannot be decoded: %v.", err)
			}
			body = bytes.NewReader(data)
		case e.Kind == lineage.Asset:
			tag = [sha256.Size]byte(e.Content)
			if body, err = p.o.Store.Body(r.Context(), e.Content); err != nil {
				return err
			}
		default:
			continue
		}
		return p.sender.Send(w, r, attachment.File{Name: f.Name, Tag: hex.EncodeToString(tag[:]), Body: body})
	}
	return fmt.Errorf("image of %v: %w", e.Span, lineage.ErrNotFound)
}

// filesOf returns the files of a message.
func filesOf(m *transcript.Message) (files []*transcript.FileInfo) {
	for _, i := range transcript.Items(m, transcript.Options{}) {
		switch {
		case i.File != nil:
			files = append(files, i.File)
		case i.Result != nil:
			files = append(files, i.Result.Files...)
		}
	}
	return files
}
