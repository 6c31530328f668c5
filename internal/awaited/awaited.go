// Package awaited lets a context interrupt reads that may block, such as those from a
// terminal or a pipe.
package awaited

import (
	"context"
	"io"
	"os"
)

// maxRead is the maximum number of bytes of one read.
const maxRead = 64 << 10

// NewReader returns a reader from r whose Read returns context.Cause once the context
// has ended, even while it waits. A pending read of r may still complete, into memory
// of its own; its data is lost.
func NewReader(ctx context.Context, r io.Reader) io.Reader { return &reader{ctx: ctx, r: r} }

type reader struct {
	ctx context.Context
	r   io.Reader
	// memory is the buffer for r, nil during a read.
	memory []byte
}

// read is the result of a read.
type read struct {
	memory []byte
	n      int
	err    error
}

func (r *reader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil || len(p) == 0 {
		return 0, err
	}
	memory := r.memory
	if memory == nil {
		memory = make([]byte, maxRead)
	}
	r.memory = nil
	done := make(chan read, 1)
	go func() {
		n, err := r.r.Read(memory[:min(len(p), maxRead)])
		done <- read{memory, n, err}
	}()
	select {
	case <-r.ctx.Done():
		return 0, context.Cause(r.ctx)
	case got := <-done:
		r.memory = got.memory
		return copy(p, got.memory[:got.n]), got.err
	}
}

// Open opens a file for reading. A regular file or a directory is returned as an
// *os.File. For any other file, such as a named pipe without a writer, Open and Read
// return context.Cause once the context has ended.
func Open(ctx context.Context, path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().IsRegular() || info.IsDir() {
		return os.Open(path)
	}
	f, err := openAwaited(ctx, path)
	if err != nil {
		return nil, err
	}
	return &file{NewReader(ctx, f), f}, nil
}

type file struct {
	io.Reader
	io.Closer
}

// opened is the result of opening a file.
type opened struct {
	file *os.File
	err  error
}

func openAwaited(ctx context.Context, path string) (*os.File, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.Open(path)
		done <- opened{f, err}
	}()
	select {
	case <-ctx.Done():
		go func() {
			if late := <-done; late.err == nil {
				late.file.Close()
			}
		}()
		return nil, context.Cause(ctx)
	case result := <-done:
		return result.file, result.err
	}
}
