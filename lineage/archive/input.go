package archive

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Input is a file of an archive, or several files that a format reads together.
type Input struct {
	// Name is the file's path in the archive, with slashes. It is empty for a stream. For files read together it is
	// the path of their folder.
	Name string
	// Files are the names of files read together.
	Files []string

	reader   *bufio.Reader // of the decompressed content
	openFile func(ctx context.Context, name string) (io.ReadCloser, error)
	at       string // its name before decompression, for reports; empty if equal to Name
	path     string // on disk, if the file is not compressed
	limits   Limits
	guard    *guard // nil if it is neither compressed nor a database
	folder   string // name of the folder, for files that are read together
	format   string // the format that grouped the files
	feed     *Feed  // what the reader reads, if the input grows
	rows     bool   // rows are wanted
	hold     func(changed time.Time, complete bool) bool
	inMemory int // the size from which on the text of an item is in a file, 0 for none
}

// NewInput returns an input that reads from r, for tests of formats.
func NewInput(name string, r io.Reader) *Input {
	return &Input{Name: name, reader: bufio.NewReaderSize(r, HeadSize), limits: Limits{}.OrDefault()}
}

// Head returns the beginning of the input.
func (in *Input) Head() Head {
	head, _ := in.reader.Peek(HeadSize) // errors are reported when the input is read
	return Head{Name: BaseName(in.Name), Bytes: head}
}

// place returns the name of the input for reports: the name of the file before decompression.
func (in *Input) place() string { return cmp.Or(in.at, in.Name) }

// title returns the path of the file in the source, without extension.
func (in *Input) title() string {
	if in.folder != "" || in.Name == "-" {
		return ""
	}
	ext := path.Ext(in.Name)
	if strings.ContainsFunc(strings.TrimPrefix(ext, "."), func(r rune) bool { return r < 'a' || r > 'z' }) {
		ext = "" // part of a version or name
	}
	return strings.ToValidUTF8(strings.TrimSuffix(in.Name, ext), "\uFFFD")
}

// Open returns the decompressed input. It can be read once.
func (in *Input) Open() io.Reader { return in.reader }

// OpenFile opens one of Files.
func (in *Input) OpenFile(ctx context.Context, name string) (io.ReadCloser, error) {
	if in.openFile == nil || !slices.Contains(in.Files, name) {
		return nil, fmt.Errorf("file %q of %q: %w", name, in.Name, os.ErrNotExist)
	}
	return in.openFile(ctx, name)
}

// FileName returns the path in the archive of one of Files.
func (in *Input) FileName(name string) string {
	if in.Name == "" || in.Name == "." {
		return name
	}
	return in.Name + "/" + name
}

// OpenInput opens one of Files as an input of its own, with the same limits. It must be closed.
func (in *Input) OpenInput(ctx context.Context, name string) (*Input, io.Closer, error) {
	f, err := in.OpenFile(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	opened := NewInput(in.FileName(name), &cancelReader{ctx, f})
	opened.limits = in.limits
	return opened, f, nil
}

// ReadFile returns the content of one of Files.
func (in *Input) ReadFile(ctx context.Context, name string) ([]byte, error) {
	f, err := in.OpenFile(ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return in.readAll(&cancelReader{ctx, f})
}

// ReadAll returns the content of the input, for a format whose files are items. It can be read once.
func (in *Input) ReadAll() ([]byte, error) { return in.readAll(in.reader) }

func (in *Input) readAll(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, in.MaxItem()+1))
	if err == nil && int64(len(b)) > in.MaxItem() {
		err = TooLarge("file", int64(len(b)), in.MaxItem())
	}
	return b, err
}

// Folder returns the name of the folder of Files, empty if it has none.
func (in *Input) Folder() string { return in.folder }

// Holds reports whether a message that its program may write again is left out: see ReadOptions.Hold.
func (in *Input) Holds(changed time.Time, complete bool) bool {
	return in.hold != nil && in.hold(changed, complete)
}

// WantsRows reports whether a format that reads a database should fill Conversation.Rows.
func (in *Input) WantsRows() bool { return in.rows }

// DiskPath returns the path of the input on disk. It is empty if the input is in an archive or compressed.
func (in *Input) DiskPath() string { return in.path }

// MaxItem is the maximum size of an item.
func (in *Input) MaxItem() int64 { return in.limits.Item }

// MaxObjects is the maximum number of JSON objects in an item.
func (in *Input) MaxObjects() int64 { return in.limits.Objects }

// Item returns an item with a text that a format has read in another way than Lines or Items, with the limits of the
// input.
func (in *Input) Item(raw []byte, at Position) Item {
	return Item{Raw: raw, At: at, objects: in.limits.Objects}
}

// Expand counts bytes that a format reads from a database of the given size. A database can refer to the same row
// many times, so the limits for compressed files apply. Beyond them Expand returns a *LimitError.
func (in *Input) Expand(n, size int64) error {
	if in.guard == nil {
		in.guard = &guard{limits: in.limits, in: func() int64 { return size }}
	}
	return in.guard.expand(n)
}

// Expanded returns a reader of decompressed content from r, another file of the given compressed size that is read
// with the input. Beyond the limits for compressed files it returns a *LimitError.
func (in *Input) Expanded(r io.Reader, size int64) io.Reader {
	return (&guard{limits: in.limits, in: func() int64 { return size }}).reader(r)
}

// LocalFile returns the path of a file with the input, for libraries that need one: the original or
// a temporary copy. done removes the copy.
func (in *Input) LocalFile(ctx context.Context) (path string, done func(), err error) {
	if in.path != "" {
		return in.path, func() {}, nil
	}
	f, err := spool(ctx, in.reader)
	if err != nil {
		return "", nil, err
	}
	return f.Name(), func() { _ = f.Close() }, nil
}

// Unreadable returns the error for an input that cannot be read. It is a *Damage, so that other inputs are still
// read, unless the context was cancelled.
func (in *Input) Unreadable(at Position, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	at.Inside = "the rest of the input"
	return Damaged(at, err)
}
