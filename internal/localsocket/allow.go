package localsocket

import (
	"fmt"
	"io/fs"
	"net"
	"os"
)

// Allow returns an error unless the other process belongs to the user of this one, or to root.
func Allow(conn *net.UnixConn) error {
	user, err := PeerUser(conn)
	if err == nil && user != os.Geteuid() && user != 0 {
		err = fmt.Errorf("user %d: %w", user, fs.ErrPermission)
	}
	return err
}
