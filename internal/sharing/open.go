package sharing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/remote"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Options configure an engine. The zero value of each field is a default.
type Options struct {
	// Options are those of the engine of an owner. Locked is called before there is a socket, and
	// Unlocking when there is none any more. Wait is also how long an operation waits, at
	// least, while another process becomes the owner.
	embedded.Options
	// NeverServe keeps others out while this process has the store open.
	NeverServe bool
	// NeverConnect refuses a store that another process has open, with a LockedError.
	NeverConnect bool

	isLocal func(dir string) bool // in place of the file system's answer, for tests
}

const (
	// patience is for how long an operation waits at least for an owner. Processes that open a
	// store answer at once, so it is for those that close one.
	patience = 10 * time.Second
	// noSocket is for how long a locked store that has no socket is waited for: an owner makes it just
	// after it has the lock, and removes it just before it lets go, unless it is stopped in between.
	noSocket = 2 * time.Second
	// handshake is for how long an owner may say nothing to a new guest. A process that is
	// stopped accepts connections, too.
	handshake = 5 * time.Second
)

// Pauses between two tries to find an owner, or to become it.
const (
	shortPause = 5 * time.Millisecond
	longPause  = 200 * time.Millisecond
)

// handle is what an engine is at a time: the owner, with an engine of its own, or a guest.
type handle struct {
	backend.Engine
	own    *embedded.Engine // nil for a guest
	reads  bool             // own only reads, and shares the lock with other readers
	asked  time.Time        // what askedFor said before a reader was opened
	server *remote.Server   // of an owner that serves; else nil
	listen *listener
	client *remote.Client // nil for an owner

	once sync.Once
	done chan struct{} // closed when all is let go of
	err  error
}

// close lets go of the store. Of several calls each waits for the first.
func (h *handle) close() error {
	h.once.Do(func() {
		defer close(h.done)
		if h.listen != nil {
			h.listen.close()
			h.server.Close()
		}
		h.err = h.Engine.Close()
		if h.listen != nil {
			h.listen.taking.Wait()
		}
	})
	<-h.done
	return h.err
}

// find makes this process a guest of the owner, or the owner.
func (e *Engine) find(ctx context.Context, wait time.Duration) (*handle, error) {
	now := time.Now()
	waited := waiting{since: now, socket: now}
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		h, connectErr := e.connect(ctx, func() { waited.since = time.Now() })
		if connectErr == nil {
			return h, nil
		}
		if !goneOwner(connectErr) {
			return nil, fmt.Errorf("open store %s, which another process has open: %w", e.dir, connectErr)
		}
		h, err := e.become(ctx)
		if err == nil || !errors.Is(err, backend.ErrLocked) {
			return h, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if e.o.Waiting != nil && wait > 0 && time.Since(waited.since) >= min(noSocket, wait/2) && e.told.CompareAndSwap(false, true) {
			e.o.Waiting(err)
		}
		if waited.enough(time.Now(), wait, connectErr) {
			var held *backend.LockedError
			if errors.As(err, &held) && !e.o.NeverConnect {
				held.Unreachable = true
				err = fmt.Errorf("open store %s: %w: %v", e.dir, held, connectErr)
			}
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// waiting is for how long a process has tried to find an owner.
type waiting struct {
	since  time.Time // when it began, or last heard of an owner that opens the store
	socket time.Time // when it began, or last saw a socket
}

// enough reports whether to give up, given why there is no connection.
func (w *waiting) enough(now time.Time, wait time.Duration, why error) bool {
	waited := now.Sub(w.since)
	switch {
	case errors.Is(why, errNoSharing), errors.Is(why, fs.ErrPermission):
		return waited >= wait
	case errors.Is(why, fs.ErrNotExist):
		return waited >= wait && now.Sub(w.socket) >= noSocket
	}
	w.socket = now
	return waited >= max(wait, patience) // there is a socket: its owner comes or goes
}

// goneOwner reports whether an error says that there is no owner to connect to now.
func goneOwner(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoSharing) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EAGAIN) || errors.Is(err, remote.ErrDisconnected) || errors.Is(err, remote.ErrMoved)
}

// shared reports whether the directory may have a socket.
func (e *Engine) shared() bool {
	local := e.o.isLocal
	if local == nil {
		local = isLocal
	}
	return local(e.dir)
}

// connect makes this process a guest. It calls alive whenever the owner says that it is opening
// the store.
func (e *Engine) connect(ctx context.Context, alive func()) (*handle, error) {
	if e.o.NeverConnect {
		return nil, errNoSharing
	}
	if _, err := os.Lstat(filepath.Join(e.dir, embedded.SocketFile)); err != nil {
		return nil, err
	}
	if !e.shared() {
		return nil, errNoSharing
	}
	conn, err := dial(e.dir)
	if err != nil {
		return nil, err
	}
	// The owner is alive as long as it says something.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(handshake, func() { cancel(errSilent) })
	defer silent.Stop()
	c, err := remote.Connect(ctx, conn, remote.ClientOptions{
		Durability: e.o.Durability,
		Opening: func(done, total int64) {
			silent.Reset(handshake)
			alive()
			if e.o.Progress != nil {
				e.o.Progress(done, total)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return &handle{Engine: c, client: c, done: make(chan struct{})}, nil
}

// errSilent is why a connection is given up on which the owner says nothing.
var errSilent = fmt.Errorf("the process that has the store open does not answer: %w", remote.ErrDisconnected)

// become makes this process the owner. Where the store cannot be written, a reader opens it
// without.
func (e *Engine) become(ctx context.Context) (*handle, error) {
	err := e.mayOwn()
	if err == nil {
		var h *handle
		if h, err = e.own(ctx); err == nil {
			return h, nil
		}
	}
	if e.o.ReadOnly && vfs.IsUnwritable(err) || e.o.ReadOnly && errors.Is(err, backend.ErrCorrupt) {
		return e.read(ctx)
	}
	return nil, err
}

// mayOwn refuses stores of other users: they might not be able to open files that this process
// creates there. A store that cannot be shared is left to the file system. If a process of that user
// is opening or closing the store, the error is a LockedError.
func (e *Engine) mayOwn() error {
	if user, ok := userOf(filepath.Join(e.dir, journalDir)); ok && user != os.Geteuid() && e.shared() {
		if held := embedded.Held(e.dir); held != nil {
			return held
		}
		return fmt.Errorf("open store %s: it belongs to user %d, who alone can change it while no process of theirs has it open: %w", e.dir, user, fs.ErrPermission)
	}
	return nil
}

// own opens the store and serves it.
func (e *Engine) own(ctx context.Context) (*handle, error) {
	h := &handle{done: make(chan struct{})}
	o := e.o.Options
	o.Wait, o.Waiting = 0, nil
	o.MustExist = o.MustExist || o.ReadOnly || e.id != [16]byte{} // then it was there
	o.ReadOnly = false
	o.Locked = func() error {
		if err := e.mayOwn(); err != nil {
			return err
		}
		if e.o.Locked != nil {
			if err := e.o.Locked(); err != nil {
				return err
			}
		}
		if e.o.NeverServe {
			return nil
		}
		return e.serve(h)
	}
	o.Unlocking = func() {
		if h.listen != nil {
			h.listen.remove()
		}
		if e.o.Unlocking != nil {
			e.o.Unlocking()
		}
	}
	o.Progress = func(done, total int64) {
		if h.server != nil {
			h.server.Progress(done, total)
		}
		if e.o.Progress != nil {
			e.o.Progress(done, total)
		}
	}
	own, err := embedded.Open(ctx, e.dir, o)
	if err != nil {
		if h.listen != nil {
			h.listen.close()
			h.server.Close()
			h.listen.taking.Wait()
		}
		return nil, err
	}
	h.Engine, h.own = own, own
	if h.server != nil {
		h.server.Open(served{own, e, h})
	}
	return h, nil
}

// served is the engine of an owner as guests use it.
type served struct {
	*embedded.Engine
	of *Engine
	h  *handle
}

// Apply implements backend.Engine.
func (s served) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	r, err := s.Engine.Apply(ctx, c, o)
	s.of.failed(s.h, err)
	return r, err
}

// serve makes the socket, on which guests are told how far opening the store is. The lock is held.
// A directory that cannot have a socket has none.
func (e *Engine) serve(h *handle) error {
	if !e.shared() {
		return nil
	}
	l, err := listen(e.dir)
	switch {
	case errors.Is(err, errNoSharing):
		return nil
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOSPC):
		if e.o.Logger != nil {
			e.o.Logger.Warn("store is not shared with other processes", "err", err)
		}
		return nil
	case err != nil:
		return err
	}
	h.server = remote.NewServer(remote.ServerOptions{Logger: e.o.Logger})
	h.listen = l
	l.accept(func(conn net.Conn) { _ = h.server.Serve(conn) })
	return nil
}
