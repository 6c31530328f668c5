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
	"syscall"
	"time"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/localsocket"
	"github.com/lineage-store/lineage/internal/remote"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// find returns a handle: as a guest if there is an owner, else as the owner.
func (e *Engine) find(ctx context.Context, wait time.Duration) (*storeHandle, error) {
	now := time.Now()
	waited := waiting{since: now, socket: now}
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		h, connectErr := e.connect(ctx, func() { waited.since = time.Now() })
		if connectErr == nil {
			return h, nil
		}
		if errors.Is(connectErr, vfs.ErrNotRegular) {
			return nil, fmt.Errorf("open store %s: %w", e.dir, connectErr)
		}
		if !noOwner(connectErr) {
			return nil, fmt.Errorf("open store %s, which another process has open: %w", e.dir, connectErr)
		}
		h, err := e.become(ctx)
		if err == nil || !errors.Is(err, backend.ErrLocked) {
			return h, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if e.o.Waiting != nil && wait > 0 && time.Since(waited.since) >= min(socketTimeout, wait/2) && e.waitingReported.CompareAndSwap(false, true) {
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

// waiting measures how long a process has tried to find an owner.
type waiting struct {
	since  time.Time // start, or last progress of an owner that is opening the store
	socket time.Time // start, or last time that a socket existed
}

// enough reports whether to give up. why is the error of the last attempt to connect.
func (w *waiting) enough(now time.Time, wait time.Duration, why error) bool {
	waited := now.Sub(w.since)
	switch {
	case errors.Is(why, localsocket.ErrUnsupported), errors.Is(why, fs.ErrPermission):
		return waited >= wait
	case errors.Is(why, fs.ErrNotExist):
		return waited >= wait && now.Sub(w.socket) >= socketTimeout
	}
	w.socket = now
	return waited >= max(wait, ownerTimeout)
}

// noOwner reports whether an attempt to connect failed because no process is the owner.
func noOwner(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, localsocket.ErrUnsupported) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EAGAIN) ||
		errors.Is(err, remote.ErrDisconnected) || errors.Is(err, remote.ErrMoved)
}

// shared reports whether the directory can have a socket.
func (e *Engine) shared() bool {
	local := e.o.isLocal
	if local == nil {
		local = isLocal
	}
	return local(e.dir)
}

// connect returns a handle as a guest. It calls alive each time the owner reports progress in opening the store.
func (e *Engine) connect(ctx context.Context, alive func()) (*storeHandle, error) {
	if e.o.NeverConnect {
		return nil, localsocket.ErrUnsupported
	}
	if _, err := os.Stat(e.dir); err != nil {
		return nil, err
	}
	if !e.shared() {
		return nil, localsocket.ErrUnsupported
	}
	if _, err := os.Lstat(filepath.Join(e.dir, embedded.SocketFile)); err != nil {
		return nil, err
	}
	conn, err := dial(e.dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(silenceTimeout, func() { cancel(errSilent) })
	defer silent.Stop()
	c, err := remote.Connect(ctx, conn, remote.ClientOptions{
		Durability: e.o.Durability,
		Opening: func(done, total int64) {
			silent.Reset(silenceTimeout)
			alive()
			if e.o.Progress != nil {
				e.o.Progress(done, total)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return &storeHandle{Engine: c, client: c, done: make(chan struct{})}, nil
}

// errSilent ends a connection on which the owner sends nothing.
var errSilent = fmt.Errorf("the process that has the store open does not answer: %w", remote.ErrDisconnected)

// become returns a handle as the owner. A process that only reads opens a store on read-only media without writing.
func (e *Engine) become(ctx context.Context) (*storeHandle, error) {
	err := e.mayOwn()
	if err == nil {
		var h *storeHandle
		if h, err = e.own(ctx); err == nil {
			return h, nil
		}
	}
	if e.o.ReadOnly && (vfs.IsUnwritable(err) || errors.Is(err, vfs.ErrNotRegular) || errors.Is(err, backend.ErrCorrupt)) {
		return e.read(ctx)
	}
	return nil, err
}

// mayOwn refuses stores of other users, who might not be able to open the files that this process creates. Stores
// that cannot be shared are allowed. The error is a LockedError if a process has locked the store.
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
func (e *Engine) own(ctx context.Context) (*storeHandle, error) {
	h := &storeHandle{done: make(chan struct{})}
	o := e.o.Options
	o.Wait, o.Waiting = 0, nil
	o.MustExist = o.MustExist || o.ReadOnly || e.id != [16]byte{} // an id is set if the store was open before
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
			h.listen.serving.Wait()
		}
		return nil, err
	}
	h.Engine, h.own = own, own
	if h.server != nil {
		h.server.Open(servedEngine{own, e, h})
	}
	return h, nil
}

// servedEngine is the engine that an owner serves to guests.
type servedEngine struct {
	*embedded.Engine
	sharing *Engine
	h       *storeHandle
}

// Apply implements backend.Engine.
func (s servedEngine) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	r, err := s.Engine.Apply(ctx, c, o)
	s.sharing.loseFailed(s.h, err)
	return r, err
}

// serve creates the socket. Guests that connect receive progress while the store is opened. The lock of the store
// must be held. If the directory cannot have a socket, the store is not shared.
func (e *Engine) serve(h *storeHandle) error {
	if !e.shared() {
		return nil
	}
	l, err := listen(e.dir)
	switch {
	case errors.Is(err, localsocket.ErrUnsupported):
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
