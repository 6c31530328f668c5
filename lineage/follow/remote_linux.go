package follow

import "golang.org/x/sys/unix"

// isRemote reports whether a folder is on a file system where other machines, or programs outside of this system, can
// change files without notification.
func isRemote(dir string) bool {
	var at unix.Statfs_t
	if unix.Statfs(dir, &at) != nil {
		return false
	}
	switch uint32(at.Type) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC,
		unix.V9FS_MAGIC, unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC:
		return true
	}
	return false
}
