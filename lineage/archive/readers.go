package archive

import (
	"context"
	"errors"
	"io"

	"github.com/lineage-store/lineage/internal/scratch"
)

type countingReader struct {
	r      io.Reader
	passed func(int64)
	n      int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if c.passed != nil {
		c.passed(int64(n))
	}
	return n, err
}

type readCloser struct {
	io.Reader
	io.Closer
}

// spool copies r to a temporary file.
func spool(ctx context.Context, r io.Reader) (*scratch.File, error) {
	f, err := scratch.NewFile()
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(f, &cancelReader{ctx, r}); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

type cancelReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *cancelReader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
