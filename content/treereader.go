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

// TreeReader reads a chunked body. Each chunk and node is checked against its key before
// any of it is returned. The order of the chunks is not checked: VerifyReader checks the
// whole body.
//
// A failed call does not move the position and may be repeated. ReadAt may be called by
// several goroutines at a time, the other methods by one.
type TreeReader struct {
	ctx  context.Context // for the methods of io, which take no context
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

// OpenTree returns a reader of the body under root, which calls get with ctx on demand. It
// fetches nothing itself: an error in the root is returned by the first read.
func OpenTree(ctx context.Context, root Root, get GetFunc) *TreeReader {
	return &TreeReader{ctx: ctx, root: root, get: get, bad: root.validate()}
}

// Size returns the size of the body according to the root.
func (t *TreeReader) Size() int64 { return t.root.Size }

// Read implements io.Reader. It reads at most to the end of a chunk.
func (t *TreeReader) Read(p []byte) (int, error) {
	if len(p) == 0 && t.bad == nil {
		return 0, nil
	}
	b, err := t.rest(&t.here, t.off, int64(len(p)))
	n := copy(p, b)
	t.off += int64(n)
	return n, err
}

// Seek implements io.Seeker. It fetches nothing, and may seek past the end.
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

// WriteTo implements io.WriterTo. Each chunk is written as fetched.
func (t *TreeReader) WriteTo(w io.Writer) (written int64, err error) {
	for {
		b, err := t.rest(&t.here, t.off, maxAhead)
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

// rest returns the bytes from off to the end of its chunk, or io.EOF at the end of the
// body. wanted is the number of bytes that will be read from there.
func (t *TreeReader) rest(c *cursor, off, wanted int64) ([]byte, error) {
	if t.bad != nil {
		return nil, t.bad
	}
	if off >= t.root.Size {
		return nil, io.EOF
	}
	return c.from(t.ctx, t.root, t.get, off, wanted)
}
