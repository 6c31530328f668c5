// Package vfs is the seam between the journal and the file system: the few
// operations a log needs, spelled so that a test can put another file system
// underneath (package crashfs loses power on command).
//
// What reaches the disk, and when, is part of the contract:
//
//   - bytes and sizes are durable once [File.Sync] returned nil after them;
//   - names (a file or directory created, renamed or removed) are durable once
//     [FS.SyncDir] of the directory that holds the name returned nil.
//
// Everything else may survive a power loss, or not, in any order.
package vfs

import "io"

// File is an open file. Reads and writes at disjoint ranges may run
// concurrently.
//
// ReadAt returns io.EOF with fewer bytes than asked for when the file ends
// first. A WriteAt that starts beyond the end fills the gap with zeros; one
// that fails may have written a prefix, whose length it returns.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer

	// Sync makes the data and the size of the file durable. After an error it
	// is unknown what the disk holds, and a later Sync that succeeds does not
	// vouch for what was written before the one that failed.
	Sync() error

	// Truncate sets the size, cutting the file or extending it with zeros.
	Truncate(size int64) error

	// Size returns the current size in bytes.
	Size() (int64, error)
}

// Mapper is a File that can be written through memory.
type Mapper interface {
	// Map returns a window on size bytes from off on. The room is reserved on the
	// disk, and the file grows to hold it, with zeros.
	Map(off, size int64) (Window, error)
}

// Window is a part of a file that is written through memory. What is written is in
// the file at once, as after File.WriteAt, for the price of copying it. It must be
// closed before the file is truncated below its end.
type Window interface {
	// WriteAt writes all of p at an offset of the file that lies in the window. When
	// it fails a part may have been written.
	WriteAt(p []byte, off int64) error
	// Expect makes it cheaper to write the next n bytes from an offset on, as far as
	// they lie in the window. It changes nothing else.
	Expect(off, n int64)
	// Close lets go of the memory. It is safe to repeat.
	Close() error
}

// Info describes a file.
type Info struct {
	Size int64 // in bytes; means nothing for a directory
}

// FS is a file system. All methods are safe for concurrent use.
//
// A missing name is reported by an error that is fs.ErrNotExist, one that is in
// the way by an error that is fs.ErrExist. No symbolic link is followed at the end of a
// name: neither that nor a pipe or device is opened, and the error matches
// ErrNotRegular. Close a file before its name is
// removed, renamed or replaced: not every system allows it otherwise.
type FS interface {
	// Open opens an existing file for reading only.
	Open(name string) (File, error)

	// OpenRW opens an existing file for reading and writing.
	OpenRW(name string) (File, error)

	// Create makes an empty file and opens it for reading and writing. It fails
	// with fs.ErrExist when the name is taken.
	Create(name string) (File, error)

	// Remove removes a file, or a directory that is empty.
	Remove(name string) error

	// Rename gives a file another name in the same directory, atomically
	// replacing the file that has it. Across directories, where no single
	// SyncDir could make it durable, it must not be used.
	Rename(oldName, newName string) error

	// MkdirAll makes a directory and the missing ones above it. It does nothing
	// when the directory exists.
	MkdirAll(dir string) error

	// List returns the base names of the files in dir, sorted. Directories are
	// left out.
	List(dir string) ([]string, error)

	// Stat describes the file or directory called name.
	Stat(name string) (Info, error)

	// SyncDir makes the names in dir durable as they are now, but not those in
	// the directories below it, nor the name of dir itself.
	SyncDir(dir string) error
}
