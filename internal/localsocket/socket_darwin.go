package localsocket

import (
	"net"

	"golang.org/x/sys/unix"
)

func withLongPath(string, string, func(*net.UnixAddr) error) error { return ErrUnsupported }

func userOfSocket(fd int) (int, error) {
	peer, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
