// Package attachment sends bytes of a store to a browser so that they are never a document of the page's origin.
// Files are saved and not opened, whatever they contain. Only raster images are shown, if they can be decoded as
// their stated type.
package attachment

import (
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // decoder
	_ "image/jpeg" // decoder
	_ "image/png"  // decoder
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/lineage-store/lineage/internal/semaphore"
	"github.com/lineage-store/lineage/server/problem"
)

const (
	// maxImage and maxPixels limit the images that are decoded, in bytes and pixels. Larger ones are saved.
	maxImage  = 32 << 20
	maxPixels = 24 << 20
	// maxName limits the names of files, in bytes.
	maxName = 200
)

// Policy is the Content-Security-Policy of every file sent.
const Policy = "sandbox; default-src 'none'; frame-ancestors 'none'"

// File is a file to send.
type File struct {
	// Name is the name under which a browser saves it. It may be hostile.
	Name string
	// Tag identifies the bytes, also among other files. It is made from a hash of them, or from the id of what
	// contains them. It consists of letters and digits.
	Tag  string
	Body io.ReadSeeker
}

// Shows reports whether images of a media type are shown, if they can be decoded.
func Shows(mediaType string) bool {
	return mediaType == "image/png" || mediaType == "image/jpeg" || mediaType == "image/gif"
}

// Sender sends files. It is safe for concurrent use.
type Sender struct {
	decoding semaphore.Semaphore // the images that are decoded

	mu    sync.Mutex
	kinds map[string]string // by tag, of files that were sent
}

// mostDecoding is the number of images that are decoded at once, each with up to 8 bytes per pixel.
const mostDecoding = 2

// NewSender returns a sender.
func NewSender() *Sender { return &Sender{decoding: semaphore.New(mostDecoding)} }

// maxKinds limits the cached kinds.
const maxKinds = 10_000

// kind returns the media type of an image that can be decoded, empty for anything else. A file is decoded once,
// however often and in however many parts it is requested.
func (s *Sender) kind(r *http.Request, f *File) (string, error) {
	s.mu.Lock()
	kind, known := s.kinds[f.Tag]
	s.mu.Unlock()
	if known {
		return kind, nil
	}
	kind, err := s.image(r, f.Body)
	if err != nil || f.Tag == "" {
		return kind, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds == nil || len(s.kinds) >= maxKinds {
		s.kinds = make(map[string]string)
	}
	s.kinds[f.Tag] = kind
	return kind, nil
}

// Send answers a request with a file. It sets all headers that affect how a browser treats it.
func (s *Sender) Send(w http.ResponseWriter, r *http.Request, f File) error {
	kind, err := s.kind(r, &f)
	if err != nil {
		return err
	}
	if _, err := f.Body.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := w.Header()
	disposition := "attachment"
	if kind != "" {
		disposition = "inline"
	} else {
		kind = "application/octet-stream"
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": fileName(f.Name)}))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", Policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	// The content may be erased, so a browser must revalidate each time.
	h.Set("Cache-Control", "private, no-cache")
	if f.Tag != "" {
		h.Set("ETag", `"`+f.Tag+`"`)
	}
	if ranges := r.Header.Get("Range"); ranges != "" && !strings.HasPrefix(ranges, "bytes=") {
		r = r.Clone(r.Context())
		r.Header.Del("Range") // a unit that is not known is ignored
	}
	http.ServeContent(&answer{ResponseWriter: w}, r, "", time.Time{}, f.Body)
	return nil
}

// answer is a ResponseWriter that answers a request for a range that the file does not have, or for another file, with a
// problem.
type answer struct {
	http.ResponseWriter
	refused bool
}

func (a *answer) WriteHeader(status int) {
	var p *problem.Problem
	switch status {
	default:
		a.ResponseWriter.WriteHeader(status)
		return
	case http.StatusRequestedRangeNotSatisfiable:
		p = problem.New(status, "no such range", "Content-Range has the size")
	case http.StatusPreconditionFailed:
		p = problem.New(status, "other content", "the content is not that of If-Match")
	}
	a.refused = true
	a.Header().Del("Content-Disposition")
	a.Header().Del("Content-Length")
	p.Write(a.ResponseWriter)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.refused {
		return len(b), nil // the text of http.Error
	}
	return a.ResponseWriter.Write(b)
}

// image returns the media type of an image that can be decoded, empty for anything else. The error is one of reading.
func (s *Sender) image(r *http.Request, body io.ReadSeeker) (string, error) {
	size, err := body.Seek(0, io.SeekEnd)
	if err != nil || size > maxImage {
		return "", err
	}
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	read := &reader{r: body}
	config, format, err := image.DecodeConfig(read)
	if err != nil || config.Width <= 0 || config.Height <= 0 || config.Width > maxPixels/config.Height {
		return "", read.err
	}
	kind := "image/" + format
	if !Shows(kind) {
		return "", nil
	}
	if err := s.decoding.Acquire(r.Context()); err != nil {
		return "", err
	}
	defer s.decoding.Release()
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if _, decoded, err := image.Decode(read); err != nil || decoded != format {
		return "", read.err
	}
	return kind, nil
}

// reader keeps the error of reading, because decoders wrap or hide it.
type reader struct {
	r   io.Reader
	err error
}

func (r *reader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = fmt.Errorf("content: %w", err)
	}
	return n, err
}

// fileName returns a name without directories, control characters and leading characters of options and hidden files.
func fileName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`"%*:<>?|;`, r) {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimLeft(name, ".-~ ")
	if len(name) > maxName {
		name = name[len(name)-maxName:] // the end has the extension
	}
	if name == "" {
		return "content"
	}
	return name
}
