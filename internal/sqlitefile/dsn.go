// Package sqlitefile builds data source names for SQLite files, with the settings that their connections need.
package sqlitefile

import (
	"net/url"
	"path/filepath"
	"strings"
)

// Memory is the path of a database that exists only while it is open.
const Memory = ":memory:"

// Settings of connections to files that several processes read and write.
var Settings = [...]string{
	"journal_mode(WAL)",
	"synchronous(NORMAL)",
	"cache_size(-64000)",
	"temp_store(MEMORY)",
	"mmap_size(268435456)",
	"foreign_keys(ON)",
	// Deleted rows are overwritten in the file.
	"secure_delete(ON)",
}

// DSN returns the data source name of a file, whose path may have any characters. lock is the way in which
// transactions begin. pragmas are set on each connection, in order.
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
