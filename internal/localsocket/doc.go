// Package localsocket provides Unix sockets in directories, and tells which users are at their ends. Directories with
// long paths work where the system allows it.
package localsocket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
)

// ErrUnsupported is returned where a directory cannot have a socket, or the user at the other end cannot be
// determined.
var ErrUnsupported = errors.New("sockets in this directory are not supported here")

// Allow returns an error unless the other process belongs to the user of this one, or to root.
func Allow(conn *net.UnixConn) error {
	user, err := PeerUser(conn)
	if err == nil && user != os.Geteuid() && user != 0 {
		err = fmt.Errorf("user %d: %w", user, fs.ErrPermission)
	}
	return err
}
