package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lineage-store/lineage/lineage"
)

// ErrUnknownFormat is returned for a format that is not in Formats.
var ErrUnknownFormat = errors.New("unknown format")

// Formats lists the formats of Write.
func Formats() []Format { return []Format{OpenAI, Responses, Anthropic, ShareGPT, Markdown, HTML} }

// Write writes the scope of the options. If it returns an error, the output is incomplete. If the scope is the whole store, a
// thread that is deleted before it is read is left out.
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
