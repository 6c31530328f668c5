// Package localsocket has Unix sockets in a directory, and the users at their ends. Sockets in directories with long names
// work where the system lets them.
package localsocket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
)

// ErrUnsupported is returned where a directory cannot have a socket, or the user at its other end is not known.
var ErrUnsupported = errors.New("sockets in this directory are not supported here")

// Allow returns an error unless the process at the other end is one of this process's user, or of root.
func Allow(conn *net.UnixConn) error {
	user, err := PeerUser(conn)
	if err == nil && user != os.Geteuid() && user != 0 {
		err = fmt.Errorf("user %d: %w", user, fs.ErrPermission)
	}
	return err
}
