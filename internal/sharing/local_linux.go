package sharing

import "golang.org/x/sys/unix"

// localTypes are the types of file systems that only one machine uses.
var localTypes = map[int64]bool{
	unix.EXT4_SUPER_MAGIC: true, // and ext2, ext3
	unix.XFS_SUPER_MAGIC:  true, unix.BTRFS_SUPER_MAGIC: true, unix.TMPFS_MAGIC: true, unix.RAMFS_MAGIC: true,
	unix.F2FS_SUPER_MAGIC: true, unix.OVERLAYFS_SUPER_MAGIC: true, unix.REISERFS_SUPER_MAGIC: true, unix.ECRYPTFS_SUPER_MAGIC: true,
	unix.NILFS_SUPER_MAGIC: true, unix.MSDOS_SUPER_MAGIC: true, unix.EXFAT_SUPER_MAGIC: true,
	0x2fc12fc1: true, // zfs
	0xca451a4e: true, // bcachefs
	0x3153464a: true, // jfs
}

// isLocal reports whether a directory is on a file system that only this machine uses.
func isLocal(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && localTypes[int64(s.Type)&0xffffffff]
}
