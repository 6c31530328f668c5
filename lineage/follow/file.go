package follow

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// file is a followed file, or one that was followed.
type file struct {
	path    string
	folder  *folder // nil if the file is in no followed folder
	pattern int     // index of the folder's pattern that matches it
	state   *State  // nil until it is examined
	now     stamp   // when it was last examined
	queued  bool
	unsaved bool
	// partial is the time since which the last line has been incomplete; size was the size of the file then.
	partial     time.Time
	partialSize int64
	reader      *reader // nil unless the file is active
	rows        *rowsOf // nil unless the file is a database that was read recently
	failures    int
	begunAgain  bool      // it is read again because the conversation that it waited for has appeared
	undecided   stamp     // what it was when it was not yet known whether its project is left out
	rest        time.Time // until then a constantly changing database is not read again
	held        time.Time // when a message that was left out because its agent may write it again is read, zero if there is none
}

// stamp is what shows that a file has changed.
type stamp struct {
	size, modified int64
	beside         int64 // of what is read with it
	mode           fs.FileMode
}

// stat updates now.
func (f *file) stat() error {
	info, err := os.Lstat(f.path)
	if err != nil {
		return err
	}
	f.now = stampOf(info)
	if name := beside(f.path); name != "" {
		f.now.beside = newest(name)
	}
	return nil
}

// newest returns the modification time of a file, in nanoseconds since 1970, or 0 if it does not exist. For a folder
// with messages of OpenCode it returns the latest time of the folder and the folders with the messages' parts.
func newest(name string) int64 {
	info, err := os.Lstat(name)
	if err != nil {
		return 0
	}
	at := info.ModTime().UnixNano()
	if !info.IsDir() {
		return at
	}
	messages, _ := os.ReadDir(name) // what is missed here is read when the session itself changes
	for _, m := range messages {
		if id, ok := strings.CutSuffix(m.Name(), ".json"); ok {
			if info, err := os.Lstat(filepath.Join(name, "..", "..", "part", id)); err == nil {
				at = max(at, info.ModTime().UnixNano())
			}
		}
	}
	return at
}

func stampOf(info fs.FileInfo) stamp {
	return stamp{size: info.Size(), modified: info.ModTime().UnixNano(), mode: info.Mode()}
}

// byLines reports whether a file consists of lines, the last of which may be incomplete.
func (f *file) byLines() bool { return strings.HasSuffix(f.path, ".jsonl") }

// compressedLines reports whether the file is a compressed file of lines.
func (f *file) compressedLines() bool { return strings.HasSuffix(f.path, ".jsonl"+compressedSuffix) }

// move sets the path of the file.
func (f *file) move(path string) {
	f.path = path
	if f.state != nil {
		if f.state.moved = f.state.path(); f.state.moved == path {
			f.state.moved = ""
		}
		f.state.setPath(path)
	}
}

// otherPath returns the path that the file has when its agent compresses it, or decompresses it.
func (f *file) otherPath() string {
	if plain := RecordedPath(f.path); plain != f.path {
		return plain
	}
	return f.path + compressedSuffix
}

// unchanged reports whether the current content of the file was read completely.
func (f *file) unchanged() bool {
	s := f.state
	return s != nil && s.Bytes == s.Size && s.Size == f.now.size && s.Modified == f.now.modified && s.Beside == f.now.beside
}

func (f *file) agent() string {
	if f.folder == nil {
		return f.state.Agent
	}
	return f.folder.agent.Name
}

// format returns the archive format of the file, empty if it has to be detected.
func (f *file) format() string { return cmp.Or(f.folder.formats[f.pattern], f.folder.format) }

var errNotRegular = fmt.Errorf("not a regular file: %w", archive.ErrRefused)

// reader reads a file of lines while it grows. After an error, or if the file no longer begins with what was read, a
// new reader reads the file from its start.
type reader struct {
	growing *importer.Growing
	taking  *taking
	// record records the lines, so that the file can be given back byte for byte.
	record *recorder
	// at is the offset up to which the file was read. lines hashes these bytes, and mark some of them.
	at       int64
	mark     [sha256.Size]byte
	modified int64 // the file's time then
	rounds   int
	fresh    bool // nothing of the file was known
	used     time.Time
}

// itemError is an unusable item of a followed file. Its text does not name the file, which is in Event.Path.
type itemError struct{ *archive.Damage }

func (e itemError) Error() string {
	if within := e.At.Within(); within != "" {
		return within + ": " + e.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap returns the damage.
func (e itemError) Unwrap() error { return e.Damage }

// itemError returns the error of an unusable item. An item of another file, which is read with this one, keeps its name.
func (f *file) itemError(d *archive.Damage) error {
	if name := d.At.File; name != filepath.Base(f.path) && name != filepath.Base(RecordedPath(f.path)) {
		return d
	}
	return itemError{d}
}
