package vfs

import (
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// window is a part of a file in memory, from a page's start on.
type window struct {
	name string
	base int64
	from int64 // what was asked for begins here
	mem  []byte

	ready int // up to where pages were asked for ahead of the writer: a page's start, or the end
	ahead int // how many bytes of them the next time
}

const (
	leastAhead = 8 << 10
	mostAhead  = 128 << 10
)

// Map implements Mapper. Room is reserved with fallocate, without which a full disk
// would show only when a page is written.
func (o osFile) Map(off, size int64) (Window, error) {
	if off < 0 || size <= 0 {
		return nil, &fs.PathError{Op: "mmap", Path: o.f.Name(), Err: fs.ErrInvalid}
	}
	conn, err := o.f.SyscallConn()
	if err != nil {
		return nil, err
	}
	w := &window{name: o.f.Name(), base: off - off%int64(os.Getpagesize()), from: off}
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
	if err != nil { // Control fails for one reason only
		mapErr = fs.ErrClosed
	}
	if mapErr != nil {
		return nil, &fs.PathError{Op: op, Path: w.name, Err: mapErr}
	}
	return w, nil
}

func (w *window) WriteAt(p []byte, off int64) (err error) {
	if w.mem == nil {
		return &fs.PathError{Op: "write", Path: w.name, Err: fs.ErrClosed}
	}
	if off < w.from || off-w.base > int64(len(w.mem)-len(p)) {
		return &fs.PathError{Op: "write", Path: w.name, Err: fs.ErrInvalid}
	}
	w.askAhead(int(off-w.base) + len(p))
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

// askAhead has the system provide pages before they are written to, several for the
// price of a call: a fault for each costs more. Where it cannot, each is one.
func (w *window) askAhead(end int) {
	if end <= w.ready {
		return
	}
	w.ahead = min(max(2*w.ahead, leastAhead), mostAhead)
	w.ask(w.ready, end+w.ahead)
}

// ask has the system provide the pages of a part, which starts with one.
func (w *window) ask(from, to int) {
	page := os.Getpagesize()
	to = min((to+page-1)/page*page, len(w.mem))
	w.ready = max(w.ready, to)
	if err := unix.Madvise(w.mem[from:to], unix.MADV_POPULATE_WRITE); err != nil {
		w.ready = len(w.mem)
	}
}

// Expect implements Window. It asks also for pages that were there already: once they
// were synced, the next write to each is a fault again. It asks for no more than that,
// for the next sync writes what was asked for.
func (w *window) Expect(off, n int64) {
	if w.mem == nil || off < w.from || n <= 0 || off-w.base > int64(len(w.mem)) {
		return
	}
	from, to := int(off-w.base), int(min(off-w.base+n, int64(len(w.mem))))
	w.ask(from-from%os.Getpagesize(), to)
}

func (w *window) Close() error {
	mem := w.mem
	if w.mem = nil; mem == nil {
		return nil
	}
	if err := unix.Munmap(mem); err != nil {
		return &fs.PathError{Op: "munmap", Path: w.name, Err: err}
	}
	return nil
}
