// Package sqlitefile names SQLite files for the driver, with what their connections need.
package sqlitefile

import (
	"net/url"
	"path/filepath"
	"strings"
)

// Memory is the path of a database that is gone when it is closed.
const Memory = ":memory:"

// Settings of connections to files that several processes read and write.
var Settings = [...]string{
	"journal_mode(WAL)",
	"synchronous(NORMAL)",
	"cache_size(-64000)",
	"temp_store(MEMORY)",
	"mmap_size(268435456)",
	"foreign_keys(ON)",
	// The bytes of rows that are deleted leave the file with them.
	"secure_delete(ON)",
}

// DSN names a file, whatever characters its path has. lock is how transactions begin, and pragmas
// are set on each connection, in their order.
func DSN(path, lock string, pragmas ...string) string {
	values := url.Values{"_pragma": pragmas, "_txlock": {lock}}
	name := "file::memory:"
	if path != Memory {
		slashed := filepath.ToSlash(path)
		if filepath.VolumeName(path) != "" {
			slashed = "/" + strings.TrimPrefix(slashed, "/")
		}
		name = "file:" + (&url.URL{Path: slashed}).EscapedPath()
	}
	return name + "?" + values.Encode()
}
