package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/awaited"
)

// Source is the location of an archive. Files may be compressed with gzip or zstd or be zip
// archives, nested up to a limit, whatever their names.
type Source struct {
	path   string
	name   string
	stream io.Reader
}

// Path returns a source that reads a file, or all files in a folder and its subfolders. Symbolic
// links in it are refused, so nothing outside is read.
func Path(path string) Source { return Source{path: path} }

// Stream returns a source that reads from r, such as standard input. The name, which may be empty,
// helps to detect the format, appears in reports, and is the title of a single untitled
// conversation. If the context ends while a Read of r blocks, that call is abandoned.
func Stream(name string, r io.Reader) Source { return Source{name: name, stream: r} }

// opening walks a source and passes its inputs to a function.
type opening struct {
	ctx     context.Context
	formats []Format
	limits  Limits
	rows    bool // are wanted
	read    func(in *Input) error
	skip    func(*Damage)
	files   int64
	root    string // the folder being read, as given
	// begin is called for a file on disk, and reports whether it is read; it may be nil. of is the one that is being read, nil for none.
	begin func(*File) (bool, error)
	of    *File
	// passed counts the bytes read of the source, before decompression.
	passed func(n int64)
}

func (o *opening) source(s Source) error {
	if s.stream != nil {
		return o.file(s.name, o.counted(awaited.NewReader(o.ctx, s.stream)), nil, 0, nil)
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		root, err := os.OpenRoot(s.path)
		if err != nil {
			return err
		}
		defer root.Close()
		o.root = s.path
		return o.folder(root.FS(), ".", 0)
	}
	if read, err := o.beginFile(s.path, info); !read || err != nil {
		return err
	}
	f, err := awaited.Open(o.ctx, s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	onDisk, _ := f.(*os.File)
	return o.file(BaseName(s.path), o.counted(f), onDisk, 0, nil)
}

func BaseName(name string) string {
	return name[strings.LastIndexAny(name, `/\`)+1:]
}

// counted counts the bytes read.
func (o *opening) counted(r io.Reader) io.Reader { return &countingReader{r: r, passed: o.passed} }

type countingReader struct {
	r      io.Reader
	passed func(int64)
	n      int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if c.passed != nil {
		c.passed(int64(n))
	}
	return n, err
}

// folder reads the files of a folder, then its subfolders: data that belongs to a session comes
// after it.
func (o *opening) folder(fsys fs.FS, dir string, depth int) error {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return o.damage(dir, err)
	}
	var names, folders []string
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			folders = append(folders, name)
		case e.Type().IsRegular():
			names = append(names, e.Name())
		case e.Type()&fs.ModeSymlink != 0:
			o.skip(Damaged(Position{File: name}, fmt.Errorf("symbolic link: %w", ErrRefused)))
		}
	}
	open := func(ctx context.Context, name string) (io.ReadCloser, error) {
		f, err := fsys.Open(path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		return readCloser{o.counted(f), f}, nil
	}
	if names, err = o.grouped(dir, names, nil, open); err != nil {
		return err
	}
	for _, name := range names {
		if err := o.count(); err != nil {
			return err
		}
		if err := o.regular(fsys, path.Join(dir, name), depth); err != nil {
			return err
		}
	}
	for _, name := range folders {
		if err := o.folder(fsys, name, depth); err != nil {
			return err
		}
	}
	return nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// regular reads a file of a folder.
func (o *opening) regular(fsys fs.FS, name string, depth int) error {
	f, err := fsys.Open(name)
	if err != nil {
		return o.damage(name, err)
	}
	defer f.Close()
	onDisk, _ := f.(*os.File)
	if info, err := f.Stat(); err == nil {
		if read, err := o.beginFile(filepath.Join(o.root, filepath.FromSlash(name)), info); !read || err != nil {
			return err
		}
		defer func() { o.of = nil }()
	}
	return o.file(name, o.counted(f), onDisk, depth, nil)
}

// beginFile reports whether a file is read.
func (o *opening) beginFile(path string, info fs.FileInfo) (bool, error) {
	if o.begin == nil || !info.Mode().IsRegular() {
		return true, nil
	}
	o.of = &File{Path: path, Size: info.Size(), Modified: info.ModTime(), Opened: time.Now()}
	return o.begin(o.of)
}

// File is a file on disk as of the time when it was opened.
type File struct {
	Path             string
	Size             int64
	Modified, Opened time.Time
}

func (o *opening) count() error {
	if o.files++; o.files > o.limits.Files {
		return &LimitError{Limit: "files", Most: o.limits.Files, What: "files", Err: ErrTooLarge}
	}
	return context.Cause(o.ctx)
}

// grouped reads the files of a folder that a format reads together, and returns the others.
func (o *opening) grouped(dir string, names []string, g *guard, open func(context.Context, string) (io.ReadCloser, error)) ([]string, error) {
	for _, f := range o.formats {
		if f.Group == nil {
			continue
		}
		group := f.Group(slices.Clone(names))
		group = slices.DeleteFunc(group, func(name string) bool {
			return !slices.Contains(names, name) || f.Sift && !o.known(f, name, open)
		})
		if len(group) == 0 {
			continue
		}
		for range group {
			if err := o.count(); err != nil {
				return nil, err
			}
		}
		in := &Input{Name: dir, Files: group, openFile: open, limits: o.limits, format: f.Name, folder: o.folderName(dir), guard: g}
		if err := o.read(in); err != nil {
			return nil, err
		}
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(group, name) })
	}
	return names, nil
}

// known reports whether a format recognises a file of a folder.
func (o *opening) known(f Format, name string, open func(context.Context, string) (io.ReadCloser, error)) bool {
	file, err := open(o.ctx, name)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, HeadSize)
	n, err := io.ReadFull(file, head)
	if o.passed != nil {
		o.passed(-int64(n)) // it will be read again
	}
	return (err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) && f.Detect(Head{Name: BaseName(name), Bytes: head[:n]})
}

// folderName returns the name of a folder, also of the source itself; empty if it has none.
func (o *opening) folderName(dir string) string {
	if name := path.Base(dir); name != "." && name != "/" {
		return name
	}
	if whole, err := filepath.Abs(o.root); err == nil && o.root != "" {
		if name := filepath.Base(whole); name != string(filepath.Separator) {
			return name
		}
	}
	return ""
}

// damage reports a file that cannot be read, unless the caller has cancelled.
func (o *opening) damage(name string, err error) error {
	if cause := context.Cause(o.ctx); cause != nil {
		return cause
	}
	o.skip(Damaged(Position{File: name}, err))
	return nil
}
