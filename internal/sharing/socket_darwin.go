package sharing

import (
	"net"

	"golang.org/x/sys/unix"
)

func withLongPath(string, string, func(*net.UnixAddr) error) error { return errNoSharing }

func userOfSocket(fd int) (int, error) {
	peer, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}

// isLocal reports whether a directory is on a file system of this machine alone.
func isLocal(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Flags&unix.MNT_LOCAL != 0
}
