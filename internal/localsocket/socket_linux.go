package localsocket

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// openFiles is the directory with the open files of a process. It is missing where /proc is not mounted.
var openFiles = "/proc/self/fd"

func withLongPath(dir, name string, call func(*net.UnixAddr) error) error {
	if _, err := os.Stat(openFiles); err != nil {
		return ErrUnsupported
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return call(&net.UnixAddr{Net: "unix", Name: fmt.Sprintf("%s/%d/%s", openFiles, d.Fd(), name)})
}

func userOfSocket(fd int) (int, error) {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
