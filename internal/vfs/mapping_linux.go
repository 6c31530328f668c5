package vfs

import (
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// mapping is a mapped part of a file, aligned to the start of a page.
type mapping struct {
	name string
	base int64
	from int64 // start of the requested part
	mem  []byte

	ready int // pages before this offset are populated: the start of a page, or the end
	ahead int // number of bytes to populate next
}

const (
	minAhead = 8 << 10
	maxAhead = 128 << 10
)

// Map implements Mapper. It reserves space with fallocate; otherwise a full disk would
// be noticed only when a page is written.
func (o osFile) Map(off, size int64) (Mapping, error) {
	if off < 0 || size <= 0 {
		return nil, &fs.PathError{Op: "mmap", Path: o.f.Name(), Err: fs.ErrInvalid}
	}
	conn, err := o.f.SyscallConn()
	if err != nil {
		return nil, err
	}
	w := &mapping{name: o.f.Name(), base: off - off%int64(os.Getpagesize()), from: off}
	var op string
	var mapErr error
	err = conn.Control(func(fd uintptr) {
		op = "fallocate"
		for {
			if mapErr = unix.Fallocate(int(fd), 0, off, size); mapErr != unix.EINTR {
				break
			}
		}
		if mapErr == nil {
			op = "mmap"
			w.mem, mapErr = unix.Mmap(int(fd), w.base, int(off-w.base+size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		}
	})
	if err != nil { // the only reason for Control to fail
		mapErr = fs.ErrClosed
	}
	if mapErr != nil {
		return nil, &fs.PathError{Op: op, Path: w.name, Err: mapErr}
	}
	return w, nil
}

func (w *mapping) WriteAt(p []byte, off int64) (err error) {
	if w.mem == nil {
		return &fs.PathError{Op: "write", Path: w.name, Err: fs.ErrClosed}
	}
	if off < w.from || off-w.base > int64(len(w.mem)-len(p)) {
		return &fs.PathError{Op: "write", Path: w.name, Err: fs.ErrInvalid}
	}
	w.populateAhead(int(off-w.base) + len(p))
	// A page that the system cannot provide is a fault of this goroutine.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			if _, ok := fault.(interface{ Addr() uintptr }); !ok {
				panic(fault)
			}
			err = &fs.PathError{Op: "write", Path: w.name, Err: fmt.Errorf("%w: %v", unix.EIO, fault)}
		}
	}()
	copy(w.mem[off-w.base:], p)
	return nil
}

// populateAhead has the system provide several pages with one call before they are
// written: a page fault for each costs more. If the call fails, pages fault one by
// one.
func (w *mapping) populateAhead(end int) {
	if end <= w.ready {
		return
	}
	w.ahead = min(max(2*w.ahead, minAhead), maxAhead)
	w.populate(w.ready, end+w.ahead)
}

// populate has the system provide the pages of a range that starts at a page boundary.
func (w *mapping) populate(from, to int) {
	page := os.Getpagesize()
	to = min((to+page-1)/page*page, len(w.mem))
	w.ready = max(w.ready, to)
	if err := unix.Madvise(w.mem[from:to], unix.MADV_POPULATE_WRITE); err != nil {
		w.ready = len(w.mem)
	}
}

// Expect implements Mapping. It also populates pages that are present: after a
// sync, the first write to each would fault again. It does not go beyond the range,
// because the next sync writes every populated page.
func (w *mapping) Expect(off, n int64) {
	if w.mem == nil || off < w.from || n <= 0 || off-w.base > int64(len(w.mem)) {
		return
	}
	from, to := int(off-w.base), int(min(off-w.base+n, int64(len(w.mem))))
	w.populate(from-from%os.Getpagesize(), to)
}

func (w *mapping) Close() error {
	mem := w.mem
	if w.mem = nil; mem == nil {
		return nil
	}
	if err := unix.Munmap(mem); err != nil {
		return &fs.PathError{Op: "munmap", Path: w.name, Err: err}
	}
	return nil
}
