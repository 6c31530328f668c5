package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// file reads a file with any compression. onDisk is the file if it is on disk uncompressed, else
// nil. within is the guard of the enclosing archive, nil at the top.
func (o *opening) file(name string, r io.Reader, onDisk *os.File, depth int, within *guard) error {
	return o.layer(name, name, r, onDisk, depth, within)
}

// layer is file for content that may be inside of a compression: at is the file's name in its
// folder or archive, name the same without the extensions of removed compressions.
func (o *opening) layer(at, name string, r io.Reader, onDisk *os.File, depth int, within *guard) error {
	counter := &countingReader{r: r}
	buffered := bufio.NewReaderSize(counter, HeadSize)
	head, err := buffered.Peek(4)
	if err != nil && err != io.EOF {
		return o.damage(at, err)
	}
	kind := compression(head)
	if kind == "" {
		in := &Input{Name: name, at: at, reader: buffered, limits: o.limits, guard: within, rows: o.rows}
		if onDisk != nil {
			in.path = onDisk.Name()
		}
		return o.read(in)
	}
	if int64(depth) >= o.limits.Depth {
		return o.damage(at, &LimitError{Limit: "depth", Most: o.limits.Depth, What: "archives inside each other", Err: ErrTooDeep})
	}
	g := within
	if g == nil {
		g = &guard{limits: o.limits, in: func() int64 { return counter.n }}
	}
	switch kind {
	case "gzip":
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return o.damage(at, fmt.Errorf("gzip: %w", err))
		}
		defer z.Close()
		return o.layer(at, strings.TrimSuffix(name, ".gz"), g.reader(z), nil, depth+1, g)
	case "zstd":
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(256<<20))
		if err != nil {
			return o.damage(at, fmt.Errorf("zstd: %w", err))
		}
		defer z.Close()
		return o.layer(at, strings.TrimSuffix(strings.TrimSuffix(name, ".zst"), ".zstd"), g.reader(z), nil, depth+1, g)
	}
	f := onDisk
	if f != nil {
		o.passedAll(f)
	} else {
		if f, err = spool(o.ctx, buffered); err != nil {
			return o.damage(at, err)
		}
		defer os.Remove(f.Name())
		defer f.Close()
	}
	return o.zip(name, f, depth+1, within)
}

// passedAll counts a file that is read in random order.
func (o *opening) passedAll(f *os.File) {
	if info, err := f.Stat(); err == nil && o.passed != nil {
		o.passed(info.Size())
	}
}

func compression(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "gzip"
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd"
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return "zip"
	}
	return ""
}

func (g *guard) reader(r io.Reader) io.Reader { return &guardedReader{r, g} }

type guardedReader struct {
	r io.Reader
	g *guard
}

func (r *guardedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if over := r.g.expand(int64(n)); over != nil {
		return n, over
	}
	return n, err
}
