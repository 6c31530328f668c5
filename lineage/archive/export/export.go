package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lineage-store/lineage/lineage"
)

// Format names a way to write conversations.
type Format string

// The formats.
const (
	OpenAI   Format = "openai"
	ShareGPT Format = "sharegpt"
	Markdown Format = "markdown"
	HTML     Format = "html"
)

// ErrUnknownFormat is returned for a format that is not one of Formats.
var ErrUnknownFormat = errors.New("unknown format")

// Formats lists what Write knows.
func Formats() []Format { return []Format{OpenAI, ShareGPT, Markdown, HTML} }

// Scope says what is written. The zero Scope is the whole store.
type Scope struct {
	// Context is one history, without the branches beside it.
	Context *lineage.Context
	// Threads are written with all their branches, in this order.
	Threads []*lineage.Thread
}

// Options configure Write. The zero value of each field is a default.
type Options struct {
	Scope Scope
	// Title heads a page. Default: the title of the thread if it is one.
	Title string
	// MaxBody is how large a message may be. Default 64 MiB. A larger one fails
	// the formats for programs, and is a note in those for people.
	MaxBody int64
	// MaxImage is how large an image may be that a page shows. Default 4 MiB.
	// Others are named only.
	MaxImage int64
}

const (
	defaultMaxBody  = 64 << 20
	defaultMaxImage = 4 << 20
)

// Write writes what the options' scope names. What
// was written before an error is not a whole document.
func Write(ctx context.Context, store *lineage.Store, w io.Writer, format Format, o Options) error {
	x := &exporter{store: store, o: o, w: bufio.NewWriterSize(w, 64<<10)}
	if x.o.MaxBody <= 0 {
		x.o.MaxBody = defaultMaxBody
	}
	if x.o.MaxImage <= 0 {
		x.o.MaxImage = defaultMaxImage
	}
	var write func(context.Context) error
	switch format {
	case OpenAI:
		write = x.openAI
	case ShareGPT:
		write = x.shareGPT
	case Markdown:
		write = x.markdown
	case HTML:
		write = x.html
	default:
		return fmt.Errorf("%w %q", ErrUnknownFormat, format)
	}
	if err := write(ctx); err != nil {
		return err
	}
	return x.w.Flush()
}

// exporter is one call of Write. The writer keeps the first error it meets, which
// Flush returns; long loops ask for it between messages.
type exporter struct {
	store *lineage.Store
	o     Options
	w     *bufio.Writer
}

func (x *exporter) put(parts ...string) {
	for _, p := range parts {
		_, _ = x.w.WriteString(p)
	}
}

// failed returns the error that writing met, if any.
func (x *exporter) failed() error {
	_, err := x.w.Write(nil)
	return err
}

// body returns an entry's bytes. ok is false for those that exceed the limit.
func (x *exporter) body(ctx context.Context, e *lineage.Entry) (body []byte, ok bool, err error) {
	if e.Erased || e.Body != nil {
		return e.Body, true, nil
	}
	if e.Size > x.o.MaxBody {
		return nil, false, nil
	}
	body, err = x.store.Original(ctx, e)
	return body, err == nil, err
}

// mustBody is body for formats that cannot leave a message out.
func (x *exporter) mustBody(ctx context.Context, e *lineage.Entry) ([]byte, error) {
	body, ok, err := x.body(ctx, e)
	if err == nil && !ok {
		err = fmt.Errorf("content %v of %d bytes: %w", e.Content, e.Size, lineage.ErrTooLarge)
	}
	return body, err
}

// erased stands for content whose bytes were removed.
const erased = "[erased]"
