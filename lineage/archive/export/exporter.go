package export

import (
	"bufio"
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
)

// exporter is the state of one call of Write. The writer keeps its first error, which Flush returns. Long loops check
// for it between messages.
type exporter struct {
	store   *lineage.Store
	o       Options
	w       *bufio.Writer
	written int64 // bytes that were put
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
	if o.Progress == nil {
		x.o.Progress = func(int, int) {}
	}
	return x
}

func (x *exporter) put(parts ...string) {
	for _, p := range parts {
		_, _ = x.w.WriteString(p)
		x.written += int64(len(p))
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
