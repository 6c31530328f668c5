package archive

import (
	"bytes"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// Head is the beginning of an input, for detection.
type Head struct {
	// Name is the input's name without folder, empty for a stream.
	Name string
	// Bytes are the first bytes after decompression, up to HeadSize.
	Bytes []byte
}

// HeadSize is the size of the beginning that Detect gets.
const HeadSize = 64 << 10

var (
	byteOrderMark = []byte("\xef\xbb\xbf")
	sqliteMagic   = []byte("SQLite format 3\x00")
)

// IsSQLite reports whether the input is a SQLite file.
func (h Head) IsSQLite() bool { return bytes.HasPrefix(h.Bytes, sqliteMagic) }

// Object returns the first object of the input, possibly truncated. Outer arrays around it are skipped. It returns
// nil if the input begins with something else.
func (h Head) Object() []byte {
	b := bytes.TrimLeft(bytes.TrimPrefix(h.Bytes, byteOrderMark), " \t\r\n[")
	if !rawjson.IsObject(b) {
		return nil
	}
	return b
}

// Lines returns the first lines of the input; the last may be truncated. A SQLite file has none: a text in it may follow
// a byte that happens to be a line break.
func (h Head) Lines(most int) [][]byte {
	if h.IsSQLite() {
		return nil
	}
	var lines [][]byte
	for line := range bytes.Lines(bytes.TrimPrefix(h.Bytes, byteOrderMark)) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			lines = append(lines, line)
		}
		if len(lines) >= most {
			break
		}
	}
	return lines
}

// rest returns the head after its first item: an element of an outer array, a value, or a line that
// is not JSON. ok is false if nothing follows.
func (h Head) rest() (Head, bool) {
	b := bytes.TrimPrefix(h.Bytes, byteOrderMark)
	i := rawjson.SkipSpace(b, 0)
	array := i < len(b) && b[i] == '['
	if array {
		i = rawjson.SkipSpace(b, i+1)
	}
	if i >= len(b) {
		return Head{}, false
	}
	end := rawjson.ValueEnd(b, i)
	if !array && !rawjson.IsObject(b[i:]) {
		end = i + bytes.IndexByte(b[i:], '\n')
		if end < i || bytes.IndexByte(b[i:end], 0) >= 0 {
			return Head{}, false
		}
	}
	if i = rawjson.SkipSpace(b, end); array && i < len(b) && b[i] == ',' {
		i = rawjson.SkipSpace(b, i+1)
	}
	if end == len(b) || i == len(b) || i == 0 {
		return Head{}, false
	}
	rest := b[i:]
	if array {
		rest = append([]byte{'['}, rest...)
	}
	return Head{Name: h.Name, Bytes: rest}, true
}

// byLine reports whether an input has an object per line, possibly after a header. Formatted JSON
// has objects over several lines or indented.
func (h Head) byLine() bool {
	b := bytes.TrimLeft(bytes.TrimPrefix(h.Bytes, byteOrderMark), " \t\r\n")
	if rawjson.IsArray(b) {
		return false
	}
	if rawjson.IsObject(b) && len(b) > HeadSize/2 && bytes.IndexByte(b, '\n') < 0 {
		return true
	}
	for line := range bytes.Lines(b) {
		if line = bytes.TrimRight(line, " \t\r\n"); rawjson.IsObject(line) && rawjson.Check(line) == nil {
			return true
		}
	}
	return false
}

// BaseName returns a file name without its folders, in the form of any system.
func BaseName(name string) string {
	return name[strings.LastIndexAny(name, `/\`)+1:]
}
