package archive

import (
	"io"
	"time"
)

// Source is the location of an archive. Files may be compressed with gzip or zstd or be zip archives, nested up to a
// limit. Compression is detected from the content, not from the name.
type Source struct {
	path   string
	name   string
	stream io.Reader
}

// Path returns a source that reads a file, or all files in a folder and its subfolders. Symbolic
// links in it are refused, so nothing outside is read.
func Path(path string) Source { return Source{path: path} }

// Stream returns a source that reads from r, such as standard input. The name may be empty. It helps to detect the
// format, appears in reports, and is the title of a single untitled conversation. If the context ends while a Read of
// r blocks, the call is abandoned.
func Stream(name string, r io.Reader) Source { return Source{name: name, stream: r} }

// File is a file on disk, as it was when it was opened.
type File struct {
	Path             string
	Size             int64
	Modified, Opened time.Time
}
