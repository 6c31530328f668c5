package memfs

import (
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
)

// pageSize is the size of a page in bytes. Pages do not move when the file grows.
const pageSize = 64 << 10

// file is the content of a file. It can outlive its name.
type file struct {
	mu    sync.RWMutex
	size  int64
	pages [][]byte // nil for zeros; bytes beyond size are zero
}

func (f *file) length() int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.size
}

func (f *file) readAt(p []byte, off int64) (n int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	p = p[:max(0, min(int64(len(p)), f.size-off))]
	for n < len(p) {
		at := off + int64(n)
		part := p[n:min(len(p), n+pageSize-int(at%pageSize))]
		if page := f.pages[at/pageSize]; page != nil {
			copy(part, page[at%pageSize:])
		} else {
			clear(part)
		}
		n += len(part)
	}
	return n
}

func (f *file) writeAt(p []byte, off int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(p) == 0 {
		return
	}
	f.resize(max(f.size, off+int64(len(p))))
	for len(p) > 0 {
		page := &f.pages[off/pageSize]
		if *page == nil {
			*page = make([]byte, pageSize)
		}
		n := copy((*page)[off%pageSize:], p)
		p, off = p[n:], off+int64(n)
	}
}

func (f *file) truncate(size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resize(size)
}

// The caller must hold mu.
func (f *file) resize(size int64) {
	pages := int((size + pageSize - 1) / pageSize)
	for len(f.pages) < pages {
		f.pages = append(f.pages, nil)
	}
	if size < f.size {
		clear(f.pages[pages:])
		f.pages = f.pages[:pages]
		if rest := size % pageSize; rest > 0 && f.pages[pages-1] != nil {
			clear(f.pages[pages-1][rest:])
		}
	}
	f.size = size
}

// handle is an open file.
type handle struct {
	name     string
	file     *file
	writable bool
	closed   atomic.Bool
}

// maxSize limits the offset of a write and the size of a file: a page of zeros takes
// only 24 bytes.
const maxSize = 64 << 30

// ready returns an error if an operation at an offset or with a size is not possible.
func (h *handle) ready(op string, off int64, change bool) error {
	switch {
	case h.closed.Load():
		return failure(op, h.name, fs.ErrClosed)
	case change && !h.writable:
		return failure(op, h.name, syscall.EBADF)
	case off < 0:
		return failure(op, h.name, fs.ErrInvalid)
	case change && off > maxSize:
		return failure(op, h.name, syscall.EFBIG)
	}
	return nil
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	if err := h.ready("read", off, false); err != nil {
		return 0, err
	}
	n := h.file.readAt(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	if err := h.ready("write", off, true); err != nil {
		return 0, err
	}
	h.file.writeAt(p, off)
	return len(p), nil
}

func (h *handle) Truncate(size int64) error {
	if err := h.ready("truncate", size, true); err != nil {
		return err
	}
	h.file.truncate(size)
	return nil
}

func (h *handle) Size() (int64, error) {
	if err := h.ready("size", 0, false); err != nil {
		return 0, err
	}
	return h.file.length(), nil
}

func (h *handle) Sync() error { return h.ready("sync", 0, false) }

func (h *handle) Close() error {
	if h.closed.Swap(true) {
		return failure("close", h.name, fs.ErrClosed)
	}
	return nil
}

func failure(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}
