package archive

import (
	"bytes"
	"io"
)

// guard counts decompressed bytes, and bytes read from a database, and refuses more than the limits allow. All parts
// of an archive share one guard.
type guard struct {
	limits Limits
	in     func() int64 // compressed bytes read, or the size of the database
	out    int64
	items  int64
}

// expand counts decompressed bytes.
func (g *guard) expand(n int64) error {
	g.out += n
	if g.out > g.limits.Total {
		return &LimitError{Limit: "total", Most: g.limits.Total, What: "bytes to read", Err: ErrTooLarge}
	}
	if g.out > g.limits.RatioFrom && g.out/g.limits.Ratio > max(g.in(), 1) {
		return &LimitError{Limit: "ratio", Most: g.limits.Ratio, What: "times its size", Err: ErrRefused}
	}
	return nil
}

// item counts a line or value.
func (g *guard) item() error {
	if g == nil {
		return nil // not compressed
	}
	return g.add(1)
}

// add counts lines or values.
func (g *guard) add(items int64) error {
	if g.items += items; g.items > g.limits.DensityFrom && g.items/g.limits.Density > g.in()/64 {
		return &LimitError{Limit: "density", Most: g.limits.Density, What: "items for each 64 compressed bytes", Err: ErrRefused}
	}
	return nil
}

// Lines returns a reader of decompressed lines from r, a file of the given compressed size. Beyond the limits for compressed files
// it returns a *LimitError.
func (l Limits) Lines(r io.Reader, size int64) io.Reader {
	g := &guard{limits: l.OrDefault(), in: func() int64 { return size }}
	return &guardedLines{g.reader(r), g}
}

// guardedLines counts the lines that it reads.
type guardedLines struct {
	r io.Reader
	g *guard
}

func (l *guardedLines) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if exceeded := l.g.add(int64(bytes.Count(p[:n], []byte{'\n'}))); exceeded != nil {
		return n, exceeded
	}
	return n, err
}

func (g *guard) reader(r io.Reader) io.Reader { return &guardedReader{r, g} }

type guardedReader struct {
	r io.Reader
	g *guard
}

func (r *guardedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if exceeded := r.g.expand(int64(n)); exceeded != nil {
		return n, exceeded
	}
	return n, err
}
