package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lineage-store/lineage/lineage"
)

// Format is an output format.
type Format string

// The formats.
const (
	OpenAI    Format = "openai"
	Responses Format = "responses"
	Anthropic Format = "anthropic"
	ShareGPT  Format = "sharegpt"
	Markdown  Format = "markdown"
	HTML      Format = "html"
)

// ForPrograms reports whether the format is JSON for programs, not for people.
func (f Format) ForPrograms() bool { return dialects[f] != "" }

// ErrUnknownFormat is returned for a format that is not in Formats.
var ErrUnknownFormat = errors.New("unknown format")

// Formats lists the formats of Write.
func Formats() []Format { return []Format{OpenAI, Responses, Anthropic, ShareGPT, Markdown, HTML} }

// Scope selects what is written. The zero Scope selects the whole store.
type Scope struct {
	// Context is a single history, without branches.
	Context *lineage.Context
	// Threads are written in this order, with all their branches.
	Threads []*lineage.Thread
}

// Options configure Write. The zero value of each field is its default.
type Options struct {
	Scope Scope
	// AsGiven writes messages as they were stored instead of as the API accepts them. Only OpenAI and ShareGPT
	// support it. See the package documentation.
	AsGiven bool
	// Lost, when not nil, is called for each thing that the format cannot express.
	Lost func(Loss)
	// Title is the heading of a page. Default: the title of the thread if there is one thread.
	Title string
	// MaxBody is the maximum size of a message. Default 64 MiB. A larger message is an error in formats for programs.
	// Formats for people write the start of its texts and a note.
	MaxBody int64
	// MaxImage is the maximum size of an image on a page. Default 4 MiB. Larger ones are only
	// named.
	MaxImage int64
}

const (
	defaultMaxBody  = lineage.MostBody
	defaultMaxImage = 4 << 20
)

// Write writes the scope of the options. If it returns an error, the output is incomplete.
func Write(ctx context.Context, store *lineage.Store, w io.Writer, format Format, o Options) error {
	x := newExporter(store, bufio.NewWriterSize(w, 64<<10), o)
	if o.AsGiven && format != OpenAI && format != ShareGPT {
		return fmt.Errorf("%s as given: %w", format, lineage.ErrInvalid)
	}
	var write func(context.Context) error
	switch format {
	case OpenAI, Responses, Anthropic:
		write = func(ctx context.Context) error { return x.lines(ctx, format) }
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

// exporter is the state of one call of Write. The writer keeps its first error, which Flush returns. Long loops check
// for it between messages.
type exporter struct {
	store *lineage.Store
	o     Options
	w     *bufio.Writer
}

func newExporter(store *lineage.Store, w *bufio.Writer, o Options) *exporter {
	x := &exporter{store: store, o: o, w: w}
	if x.o.MaxBody <= 0 {
		x.o.MaxBody = defaultMaxBody
	}
	if x.o.MaxImage <= 0 {
		x.o.MaxImage = defaultMaxImage
	}
	if o.Lost == nil {
		x.o.Lost = func(Loss) {}
	}
	return x
}

func (x *exporter) put(parts ...string) {
	for _, p := range parts {
		_, _ = x.w.WriteString(p)
	}
}

// failed returns the writer's error, if any.
func (x *exporter) failed() error {
	_, err := x.w.Write(nil)
	return err
}

// body returns the body of an entry. ok is false if the body exceeds the limit.
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

// mustBody is body for formats that cannot leave out a message.
func (x *exporter) mustBody(ctx context.Context, e *lineage.Entry) ([]byte, error) {
	body, ok, err := x.body(ctx, e)
	if err == nil && !ok {
		err = fmt.Errorf("content %v of %d bytes: %w", e.Content, e.Size, lineage.ErrTooLarge)
	}
	return body, err
}
