package content

import (
	"context"
	"errors"
	"fmt"
	"io"
)

var (
	errWhence         = errors.New("unknown whence")
	errNegativeOffset = errors.New("negative offset")
)

// TreeReader reads a body that was cut. Each chunk and node is checked against
// its key before anything of it is returned, and one chunk is held at a time. The
// order of the chunks is the tree's word: VerifyReader checks the whole.
//
// A failed call moves nothing and may be tried again. ReadAt may be called by
// several goroutines at a time, the other methods by one.
type TreeReader struct {
	ctx  context.Context // for the methods of io, which have no place for one
	root Root
	get  GetFunc
	off  int64
	here cursor
	bad  error // what is wrong with root
}

var (
	_ io.ReadSeeker = (*TreeReader)(nil)
	_ io.ReaderAt   = (*TreeReader)(nil)
	_ io.WriterTo   = (*TreeReader)(nil)
)

// OpenTree returns a reader of the body under root, which fetches through get
// with ctx as it goes. It fetches nothing by itself: what is wrong with the root
// is returned by the first read.
func OpenTree(ctx context.Context, root Root, get GetFunc) *TreeReader {
	return &TreeReader{ctx: ctx, root: root, get: get, bad: root.validate()}
}

// Size returns how many bytes the root says the body has.
func (t *TreeReader) Size() int64 { return t.root.Size }

// Read implements io.Reader. It returns no more than what is left of one chunk.
func (t *TreeReader) Read(p []byte) (int, error) {
	if len(p) == 0 && t.bad == nil {
		return 0, nil
	}
	b, err := t.rest(&t.here, t.off, int64(len(p)))
	n := copy(p, b)
	t.off += int64(n)
	return n, err
}

// Seek implements io.Seeker. It fetches nothing, and may go past the end.
func (t *TreeReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += t.off
	case io.SeekEnd:
		offset += t.root.Size
	default:
		return t.off, fmt.Errorf("seeking in body: %w %d", errWhence, whence)
	}
	if offset < 0 {
		return t.off, fmt.Errorf("seeking in body: %w %d", errNegativeOffset, offset)
	}
	t.off = offset
	return offset, nil
}

// ReadAt implements io.ReaderAt.
func (t *TreeReader) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("reading body: %w %d", errNegativeOffset, off)
	}
	var c cursor
	for n < len(p) {
		b, err := t.rest(&c, off+int64(n), int64(len(p)-n))
		if err != nil {
			return n, err
		}
		n += copy(p[n:], b)
	}
	return n, nil
}

// WriteTo implements io.WriterTo. Each chunk is written as it was fetched.
func (t *TreeReader) WriteTo(w io.Writer) (written int64, err error) {
	for {
		b, err := t.rest(&t.here, t.off, mostAhead)
		if err == io.EOF {
			return written, nil
		}
		if err != nil {
			return written, err
		}
		n, err := w.Write(b)
		written += int64(n)
		t.off += int64(n)
		if err == nil && n < len(b) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return written, err
		}
	}
}

// rest returns what follows off in its chunk, or io.EOF behind the last byte. So many bytes
// are wanted from there on.
func (t *TreeReader) rest(c *cursor, off, wanted int64) ([]byte, error) {
	if t.bad != nil {
		return nil, t.bad
	}
	if off >= t.root.Size {
		return nil, io.EOF
	}
	return c.from(t.ctx, t.root, t.get, off, wanted)
}
