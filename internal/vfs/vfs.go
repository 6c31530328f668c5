// Package vfs is the interface between the journal and the file system. It has only
// the operations that a log needs, so that tests can replace the file system
// (package crashfs simulates power loss).
//
// The contract includes durability:
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
// ReadAt returns io.EOF with fewer bytes than requested if the file ends first. A
// WriteAt that starts beyond the end fills the gap with zeros; one that fails may
// have written a prefix, whose length it returns.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer

	// Sync makes the data and the size of the file durable. After an error the
	// content of the disk is unknown, and a later successful Sync does not cover the
	// writes before the failed one.
	Sync() error

	// Truncate sets the size, cutting the file or extending it with zeros.
	Truncate(size int64) error

	// Size returns the current size in bytes.
	Size() (int64, error)
}

// Mapper is a File that supports writes through mapped memory.
type Mapper interface {
	// Map maps size bytes starting at off. It reserves disk space for them and
	// extends the file with zeros if necessary.
	Map(off, size int64) (Mapping, error)
}

// Mapping is a mapped part of a file. A write is in the file at once, as after
// File.WriteAt, and costs only a copy. A mapping must be closed before the file is
// truncated below the end of the mapping.
type Mapping interface {
	// WriteAt writes all of p at an offset of the file that lies in the mapping. If
	// it fails, a part may have been written.
	WriteAt(p []byte, off int64) error
	// Expect is a hint that the next n bytes from off will be written soon, which
	// makes the write cheaper. It changes no content.
	Expect(off, n int64)
	// Close unmaps the memory. It may be called twice.
	Close() error
}

// Info describes a file.
type Info struct {
	Size int64 // in bytes; undefined for a directory
}

// FS is a file system. All methods are safe for concurrent use.
//
// A missing name is reported by an error that matches fs.ErrNotExist, an existing
// one by an error that matches fs.ErrExist. The last element of a name must not be a
// symbolic link, a pipe or a device: the error matches ErrNotRegular. Close a file
// before it is removed, renamed or replaced: some systems do not allow it otherwise.
type FS interface {
	// Open opens an existing file for reading only.
	Open(name string) (File, error)

	// OpenRW opens an existing file for reading and writing.
	OpenRW(name string) (File, error)

	// Create creates an empty file and opens it for reading and writing. It fails
	// with fs.ErrExist if the name exists.
	Create(name string) (File, error)

	// Remove removes a file or an empty directory.
	Remove(name string) error

	// Rename renames a file within a directory, atomically replacing an existing
	// file. It must not be used across directories, where no single SyncDir could
	// make it durable.
	Rename(oldName, newName string) error

	// MkdirAll creates a directory and its missing parents. It does nothing if the
	// directory exists.
	MkdirAll(dir string) error

	// List returns the base names of the files in dir, sorted. Directories are
	// left out.
	List(dir string) ([]string, error)

	// Stat describes the file or directory called name.
	Stat(name string) (Info, error)

	// SyncDir makes the current names in dir durable, but not those in
	// subdirectories, nor the name of dir itself.
	SyncDir(dir string) error
}
