package crashfs

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"syscall"

	"github.com/lineage-store/lineage/internal/vfs"
)

var (
	_ vfs.File   = (*handle)(nil)
	_ vfs.Mapper = (*handle)(nil)
)

// ready returns an error if the handle cannot be used.
func (h *handle) ready(op string) error {
	if h.fsys.dead {
		return ErrCrashed
	}
	if h.closed {
		return h.fail(op, fs.ErrClosed)
	}
	return nil
}

// readyToChange is ready for an operation that changes bytes starting at off.
func (h *handle) readyToChange(op string, off int64) error {
	if err := h.ready(op); err != nil {
		return err
	}
	if !h.writable {
		return h.fail(op, syscall.EBADF)
	}
	if off < 0 {
		return h.fail(op, fs.ErrInvalid)
	}
	return nil
}

func (h *handle) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: h.name, Err: err}
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	h.fsys.mu.Lock()
	defer h.fsys.mu.Unlock()
	if err := h.ready("read"); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, h.fail("read", fs.ErrInvalid)
	}
	content := h.file.live
	n := copy(p, content[min(off, int64(len(content))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	h.fsys.mu.Lock()
	defer h.fsys.mu.Unlock()
	if err := h.readyToChange("write", off); err != nil {
		return 0, err
	}
	n := len(p)
	torn, err := h.fsys.begin("write", h.name)
	if err != nil {
		n = min(n, torn)
	}
	if fits := h.fsys.room(h.file, off, n); fits < n {
		n = fits
		if err == nil {
			err = h.fail("write", syscall.ENOSPC)
		}
	}
	if n > 0 {
		h.fsys.modify(&edit{file: h.file, off: off, data: slices.Clone(p[:n])})
	}
	return n, err
}

func (h *handle) Truncate(size int64) error {
	h.fsys.mu.Lock()
	defer h.fsys.mu.Unlock()
	if err := h.readyToChange("truncate", size); err != nil {
		return err
	}
	if _, err := h.fsys.begin("truncate", h.name); err != nil {
		return err
	}
	if growth := size - int64(len(h.file.live)); growth > 0 && h.fsys.full(growth) {
		return h.fail("truncate", syscall.ENOSPC)
	}
	h.fsys.modify(&edit{file: h.file, off: size, truncate: true})
	return nil
}

func (h *handle) Sync() error {
	h.fsys.mu.Lock()
	defer h.fsys.mu.Unlock()
	if err := h.ready("sync"); err != nil {
		return err
	}
	_, err := h.fsys.begin("sync", h.name)
	if err == nil && h.fsys.syncErr != nil {
		err = h.fail("sync", h.fsys.syncErr)
	}
	if err == nil {
		h.fsys.settleBytes(h.file)
		return nil
	}
	if !h.fsys.dead {
		h.fsys.markLost(h.file)
	}
	return err
}

func (h *handle) Size() (int64, error) {
	h.fsys.mu.Lock()
	defer h.fsys.mu.Unlock()
	if err := h.ready("size"); err != nil {
		return 0, err
	}
	return int64(len(h.file.live)), nil
}

func (h *handle) Close() error {
	h.fsys.mu.Lock()
	defer h.fsys.mu.Unlock()
	if err := h.ready("close"); err != nil {
		return err
	}
	h.closed = true
	return nil
}

// Map implements vfs.Mapper. Each write through a mapping counts as an operation,
// and fails like a page fault that the system cannot serve.
func (h *handle) Map(off, size int64) (vfs.Mapping, error) {
	h.fsys.mu.Lock()
	defer h.fsys.mu.Unlock()
	if err := h.readyToChange("map", off); err != nil {
		return nil, err
	}
	if size <= 0 {
		return nil, h.fail("map", fs.ErrInvalid)
	}
	if _, err := h.fsys.begin("map", h.name); err != nil {
		return nil, err
	}
	if growth := off + size - int64(len(h.file.live)); growth > 0 {
		if h.fsys.full(growth) {
			return nil, h.fail("map", syscall.ENOSPC)
		}
		h.fsys.modify(&edit{file: h.file, off: off + size, truncate: true})
	}
	return &mapping{handle: h, from: off, to: off + size}, nil
}

// mapping is a mapped part of a file. It must not be used concurrently.
type mapping struct {
	handle   *handle
	from, to int64
	closed   bool
}

func (w *mapping) WriteAt(p []byte, off int64) error {
	if w.closed {
		return w.handle.fail("write", fs.ErrClosed)
	}
	end := off + int64(len(p))
	if off < w.from || end > w.to {
		return w.handle.fail("write", fs.ErrInvalid)
	}
	if size, err := w.handle.Size(); err != nil || size < end {
		return w.handle.fail("write", errors.Join(syscall.EIO, err)) // it was truncated
	}
	_, err := w.handle.WriteAt(p, off)
	return err
}

func (w *mapping) Expect(int64, int64) {}

func (w *mapping) Close() error {
	w.closed = true
	return nil
}
