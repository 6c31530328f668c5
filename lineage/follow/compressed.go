package follow

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/lineage-store/lineage/internal/scratch"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/archive"
)

// readCompressed reads a compressed file of lines as the plain file that it replaces, so that what is recorded is the
// same for both. It reports false if the file must be imported instead: it is damaged, or too large when it is
// decompressed.
func (r *run) readCompressed(ctx context.Context, f *file) (bool, error) {
	plain, err := decompress(f.path, r.options.Limits)
	if err != nil || plain == nil {
		return false, err
	}
	defer plain.Close()
	info, err := plain.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	if err := r.closeReader(ctx, f); err != nil {
		return true, err
	}
	now, was := f.now, f.state
	now.size = info.Size()
	if err := r.readFrom(ctx, f, plain.File, now, now.size); err != nil {
		return true, err
	}
	if err := r.closeReader(ctx, f); err != nil {
		return true, err
	}
	if f.state != was && f.state.Bytes == now.size { // it was read, and what is recorded of it is stored
		f.state.Bytes, f.state.Size = f.now.size, f.now.size
		r.changed(f)
	}
	return true, nil
}

// decompress writes the content of a compressed file to a temporary file. It returns nil if the file is damaged, or has
// more than maxWhole bytes or more than the limits allow when it is decompressed.
func decompress(path string, limits archive.Limits) (*scratch.File, error) {
	opened, err := vfs.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return nil, err
	}
	z, err := archive.Zstd(opened)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	to, err := scratch.NewFile()
	if err != nil {
		return nil, err
	}
	w := &plainWriter{w: to}
	n, damage := io.Copy(w, io.LimitReader(limits.Lines(z, info.Size()), maxWhole+1))
	if w.err != nil || damage != nil || n > maxWhole {
		return nil, errors.Join(w.err, to.Close())
	}
	return to, nil
}

// plainWriter keeps the error of a write, which io.Copy does not distinguish from one of a read.
type plainWriter struct {
	w   io.Writer
	err error
}

func (p *plainWriter) Write(b []byte) (n int, err error) {
	n, p.err = p.w.Write(b)
	return n, p.err
}
