package sharing

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxPath is the greatest length of a path of a socket that all systems take.
const maxPath = 100

// within calls a function with a path of a name in a directory that is short enough for a socket.
func within[T any](dir, name string, call func(path string) (T, error)) (T, error) {
	path := filepath.Join(dir, name)
	if len(path) <= maxPath {
		return call(path)
	}
	var none T
	d, err := os.Open(dir)
	if err != nil {
		return none, err
	}
	defer d.Close()
	return call(fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name))
}

func listenIn(dir, name string) (*net.UnixListener, error) {
	return within(dir, name, func(path string) (*net.UnixListener, error) {
		return net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	})
}

func dialIn(dir, name string) (*net.UnixConn, error) {
	return within(dir, name, func(path string) (*net.UnixConn, error) {
		return net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: path})
	})
}

// peerUser returns the effective user of the process at the other end.
func peerUser(conn *net.UnixConn) (user int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var of *unix.Ucred
	if controlErr := raw.Control(func(fd uintptr) {
		of, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); controlErr != nil {
		return 0, controlErr
	}
	if err != nil {
		return 0, err
	}
	return int(of.Uid), nil
}

// localTypes are the types of file systems on which all processes that see a directory run on one
// machine.
var localTypes = map[int64]bool{
	unix.EXT4_SUPER_MAGIC: true, // and ext2, ext3
	unix.XFS_SUPER_MAGIC:  true, unix.BTRFS_SUPER_MAGIC: true, unix.TMPFS_MAGIC: true, unix.RAMFS_MAGIC: true,
	unix.F2FS_SUPER_MAGIC: true, unix.OVERLAYFS_SUPER_MAGIC: true, unix.REISERFS_SUPER_MAGIC: true, unix.ECRYPTFS_SUPER_MAGIC: true,
	unix.NILFS_SUPER_MAGIC: true, unix.MSDOS_SUPER_MAGIC: true, unix.EXFAT_SUPER_MAGIC: true,
	0x2fc12fc1: true, // zfs
	0xca451a4e: true, // bcachefs
	0x3153464a: true, // jfs
}

// isLocal reports whether a directory is on a file system of this machine alone.
func isLocal(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && localTypes[int64(s.Type)&0xffffffff]
}
