//go:build linux || darwin

package localsocket

import (
	"net"
	"path/filepath"
)

// maxPath is the maximum length of a socket path that all systems accept.
const maxPath = 100

// withPath calls a function with a path that is short enough for a socket.
func withPath(dir, name string, call func(*net.UnixAddr) error) error {
	path := filepath.Join(dir, name)
	if len(path) > maxPath {
		return withLongPath(dir, name, call)
	}
	return call(&net.UnixAddr{Net: "unix", Name: path})
}

// Listen creates a socket with a name in a directory.
func Listen(dir, name string) (l *net.UnixListener, err error) {
	err = withPath(dir, name, func(at *net.UnixAddr) (err error) {
		l, err = net.ListenUnix("unix", at)
		return err
	})
	return l, err
}

// Dial connects to the socket with a name in a directory.
func Dial(dir, name string) (conn *net.UnixConn, err error) {
	err = withPath(dir, name, func(at *net.UnixAddr) (err error) {
		conn, err = net.DialUnix("unix", nil, at)
		return err
	})
	return conn, err
}

// PeerUser returns the effective user of the process at the other end.
func PeerUser(conn *net.UnixConn) (user int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	if controlErr := raw.Control(func(fd uintptr) { user, err = userOfSocket(int(fd)) }); controlErr != nil {
		return 0, controlErr
	}
	return user, err
}
