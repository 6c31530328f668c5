package sharing

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/localsocket"
	"github.com/lineage-store/lineage/internal/vfs"
)

// newSocket is the name under which a socket is created before it replaces the old one. Only the process that holds
// the lock of the store changes these files.
const newSocket = embedded.SocketFile + ".new"

const journalDir = "journal"

// listener accepts guests on the socket of a store.
type listener struct {
	dir    string
	l      *net.UnixListener
	socket fs.FileInfo

	mu      sync.Mutex
	closed  bool
	serving sync.WaitGroup
}

// listen creates the socket of a directory. The lock of the store must be held.
func listen(dir string) (*listener, error) {
	name := filepath.Join(dir, embedded.SocketFile)
	if err := requireSocket(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	created := filepath.Join(dir, newSocket)
	err := requireSocket(created)
	if err == nil {
		err = os.Remove(created)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l := &listener{dir: dir}
	if l.l, err = localsocket.Listen(dir, newSocket); err != nil {
		return nil, err
	}
	l.l.SetUnlinkOnClose(false)
	if err = os.Chmod(created, 0o600); err == nil {
		if l.socket, err = os.Lstat(created); err == nil {
			err = os.Rename(created, name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.l.Close(), os.Remove(created))
	}
	return l, nil
}

// requireSocket refuses a file that is not a socket, such as a link to one.
func requireSocket(name string) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return vfs.NotSocket(name, info.Mode())
	}
	return nil
}

// accept calls a function for each connection of an allowed user, in its own goroutine, until the listener is closed.
func (l *listener) accept(serve func(net.Conn)) {
	l.serving.Go(func() {
		for {
			conn, err := l.l.AcceptUnix()
			if err != nil {
				l.mu.Lock()
				closed := l.closed
				l.mu.Unlock()
				if closed {
					return
				}
				time.Sleep(shortPause) // there may be too many open files
				continue
			}
			if err := localsocket.Allow(conn); err != nil {
				_ = conn.Close()
				continue
			}
			l.serving.Go(func() { serve(conn) })
		}
	})
}

// close stops accepting connections. It does not remove the socket.
func (l *listener) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_ = l.l.Close()
}

// remove removes the socket, unless another one has replaced it. The lock of the store must be held.
func (l *listener) remove() {
	name := filepath.Join(l.dir, embedded.SocketFile)
	if info, err := os.Lstat(name); err == nil && os.SameFile(info, l.socket) {
		_ = os.Remove(name)
	}
}

// mayServe checks the user of the process that serves the store. Every user who can write to the directory can create
// a socket there, so only the guest's own user is trusted. Root also trusts the owner of the directory.
func mayServe(dir string, owner, guest int) error {
	if guest == 0 {
		for _, name := range []string{filepath.Join(dir, journalDir), dir} {
			if user, ok := userOf(name); ok {
				guest = user
				break
			}
		}
	}
	if owner != guest {
		return fmt.Errorf("the store is served by another user (%d): %w", owner, fs.ErrPermission)
	}
	return nil
}

// dial connects to the socket of a directory.
func dial(dir string) (*net.UnixConn, error) {
	if err := requireSocket(filepath.Join(dir, embedded.SocketFile)); err != nil {
		return nil, err
	}
	conn, err := localsocket.Dial(dir, embedded.SocketFile)
	if err != nil {
		return nil, err
	}
	user, err := localsocket.PeerUser(conn)
	if err == nil {
		err = mayServe(dir, user, os.Geteuid())
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Pauses between two attempts to find the owner or to become it.
const (
	shortPause = 5 * time.Millisecond
	longPause  = 200 * time.Millisecond
)
