//go:build !unix

package scratch

import "io/fs"

// own reports whether a directory belongs to this user: on this system every user has temporary files of his own.
func own(fs.FileInfo) bool { return true }
