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
	"github.com/lineage-store/lineage/internal/vfs"
)

// newSocket is the name under which a socket is made, before it takes the place of an old one.
// Only the process that holds the lock of the store touches either.
const newSocket = embedded.SocketFile + ".new"

const journalDir = "journal"

// errNoSharing is returned where a directory cannot have a socket.
var errNoSharing = errors.New("this directory cannot be shared between processes")

// listener accepts guests on the socket of a store.
type listener struct {
	dir string
	l   *net.UnixListener
	is  fs.FileInfo // the socket

	mu     sync.Mutex
	closed bool
	taking sync.WaitGroup
}

// listen makes the socket of a directory. The lock of the store is held.
func listen(dir string) (*listener, error) {
	name := filepath.Join(dir, embedded.SocketFile)
	if err := requireSocket(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	made := filepath.Join(dir, newSocket)
	if err := requireSocket(made); err == nil {
		err = os.Remove(made)
		if err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := listenIn(dir, newSocket)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	is := &listener{dir: dir, l: l}
	if err = os.Chmod(made, 0o600); err == nil {
		if is.is, err = os.Lstat(made); err == nil {
			err = os.Rename(made, name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(made))
	}
	return is, nil
}

// requireSocket refuses what is no socket. The name is not followed where it is a link.
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

// accept hands connections of allowed users to a function, each in a goroutine of its own, until
// the listener is closed.
func (l *listener) accept(serve func(net.Conn)) {
	l.taking.Go(func() {
		for {
			conn, err := l.l.AcceptUnix()
			if err != nil {
				l.mu.Lock()
				closed := l.closed
				l.mu.Unlock()
				if closed {
					return
				}
				time.Sleep(shortPause) // such as too many open files
				continue
			}
			if err := mayConnect(conn); err != nil {
				_ = conn.Close()
				continue
			}
			l.taking.Go(func() { serve(conn) })
		}
	})
}

// close refuses connections from now on. The name stays.
func (l *listener) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_ = l.l.Close()
}

// remove removes the name, if it is that of this socket. The lock of the store is held.
func (l *listener) remove() {
	name := filepath.Join(l.dir, embedded.SocketFile)
	if info, err := os.Lstat(name); err == nil && os.SameFile(info, l.is) {
		_ = os.Remove(name)
	}
}

// mayConnect refuses guests of other users than the owner's, but for root.
func mayConnect(conn *net.UnixConn) error {
	user, err := peerUser(conn)
	if err == nil && user != os.Geteuid() && user != 0 {
		err = fmt.Errorf("user %d: %w", user, fs.ErrPermission)
	}
	return err
}

// mayTrust refuses owners of other users: anybody who can write to a directory can make a socket
// there. Root is a guest of the user to whom the store belongs.
func mayTrust(dir string, conn *net.UnixConn) error {
	user, err := peerUser(conn)
	if err != nil {
		return err
	}
	return mayServe(dir, user, os.Geteuid())
}

// mayServe refuses a user as the owner of a store whom another user must not trust.
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
	conn, err := dialIn(dir, embedded.SocketFile)
	if err != nil {
		return nil, err
	}
	if err := mayTrust(dir, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
