package sharing

import (
	"net"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxPath is the greatest length of a path of a socket.
const maxPath = 100

func listenIn(dir, name string) (*net.UnixListener, error) {
	path := filepath.Join(dir, name)
	if len(path) > maxPath {
		return nil, errNoSharing
	}
	return net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
}

func dialIn(dir, name string) (*net.UnixConn, error) {
	path := filepath.Join(dir, name)
	if len(path) > maxPath {
		return nil, errNoSharing
	}
	return net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: path})
}

// peerUser returns the effective user of the process at the other end.
func peerUser(conn *net.UnixConn) (user int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var of *unix.Xucred
	if controlErr := raw.Control(func(fd uintptr) {
		of, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); controlErr != nil {
		return 0, controlErr
	}
	if err != nil {
		return 0, err
	}
	return int(of.Uid), nil
}

// isLocal reports whether a directory is on a file system of this machine alone.
func isLocal(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Flags&unix.MNT_LOCAL != 0
}
