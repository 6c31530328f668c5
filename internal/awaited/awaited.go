// Package awaited reads what may keep its reader waiting, such as a terminal or a pipe,
// for no longer than a context lasts.
package awaited

import (
	"context"
	"io"
	"os"
)

// mostRead is how many bytes are read at once.
const mostRead = 64 << 10

// NewReader returns a reader of what r holds whose Read returns context.Cause once the
// context has ended, also while it waits. What r is asked for then it may still read,
// into memory of its own: nobody gets that.
func NewReader(ctx context.Context, r io.Reader) io.Reader { return &reader{ctx: ctx, r: r} }

type reader struct {
	ctx context.Context
	r   io.Reader
	// memory is what r reads into, nil while it does.
	memory []byte
}

// read is what came of reading once.
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
		memory = make([]byte, mostRead)
	}
	r.memory = nil
	done := make(chan read, 1)
	go func() {
		n, err := r.r.Read(memory[:min(len(p), mostRead)])
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

// Open opens a file for reading. One that is regular, or a folder, is an *os.File.
// With any other, such as a named pipe that nobody writes to, opening it and reading
// from it return context.Cause once the context has ended.
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

// opened is what came of opening a file.
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
	case is := <-done:
		return is.file, is.err
	}
}
