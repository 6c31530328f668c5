package archive

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
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

	"github.com/klauspost/compress/zstd"

	"github.com/lineage-store/lineage/internal/awaited"
)

// opening walks a source and passes its inputs to a function.
type opening struct {
	ctx     context.Context
	formats []Format
	limits  Limits
	rows    bool // rows are wanted
	hold    func(changed time.Time, complete bool) bool
	read    func(in *Input) error
	skip    func(*Damage)
	files   int64
	root    string // the folder being read, as given
	// begin, when not nil, is called for each file on disk and reports whether to read it. current is the file being read,
	// nil for none.
	begin   func(*File) (bool, error)
	current *File
	// passed is called with the number of source bytes read, before decompression.
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

// counted returns a reader that counts the bytes read.
func (o *opening) counted(r io.Reader) io.Reader { return &countingReader{r: r, passed: o.passed} }

// folder reads the files of a folder, then its subfolders, because data that belongs to a session is in subfolders.
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
		defer func() { o.current = nil }()
	}
	return o.file(name, o.counted(f), onDisk, depth, nil)
}

// beginFile reports whether to read a file.
func (o *opening) beginFile(path string, info fs.FileInfo) (bool, error) {
	if o.begin == nil || !info.Mode().IsRegular() {
		return true, nil
	}
	o.current = &File{Path: path, Size: info.Size(), Modified: info.ModTime(), Opened: time.Now()}
	return o.begin(o.current)
}

func (o *opening) count() error {
	if o.files++; o.files > o.limits.Files {
		return &LimitError{Limit: "files", Most: o.limits.Files, What: "files", Err: ErrTooLarge}
	}
	return context.Cause(o.ctx)
}

// grouped reads those files of a folder that a format reads together. It returns the others.
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
		o.passed(-int64(n)) // the file will be read again
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

// file reads a file with any compression. onDisk is the file if it is on disk uncompressed, else
// nil. within is the guard of the enclosing archive, nil at the top.
func (o *opening) file(name string, r io.Reader, onDisk *os.File, depth int, within *guard) error {
	return o.layer(name, name, r, onDisk, depth, within)
}

// layer reads content that may be compressed. at is the file's name in its folder or archive. name is the same
// without the extensions of compressions already removed.
func (o *opening) layer(at, name string, r io.Reader, onDisk *os.File, depth int, within *guard) error {
	counter := &countingReader{r: r}
	buffered := bufio.NewReaderSize(counter, HeadSize)
	head, err := buffered.Peek(4)
	if err != nil && err != io.EOF {
		return o.damage(at, err)
	}
	kind := compression(head)
	if kind == "" {
		in := &Input{Name: name, at: at, reader: buffered, limits: o.limits, guard: within, rows: o.rows, hold: o.hold}
		if onDisk != nil {
			in.path = onDisk.Name()
		}
		return o.read(in)
	}
	if int64(depth) >= o.limits.Depth {
		return o.damage(at, &LimitError{Limit: "depth", Most: o.limits.Depth, What: "archives inside each other", Err: ErrTooDeep})
	}
	g := within
	if g == nil {
		g = &guard{limits: o.limits, in: func() int64 { return counter.n }}
	}
	switch kind {
	case "gzip":
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return o.damage(at, fmt.Errorf("gzip: %w", err))
		}
		defer z.Close()
		return o.layer(at, strings.TrimSuffix(name, ".gz"), g.reader(z), nil, depth+1, g)
	case "zstd":
		z, err := Zstd(buffered)
		if err != nil {
			return o.damage(at, fmt.Errorf("zstd: %w", err))
		}
		defer z.Close()
		return o.layer(at, strings.TrimSuffix(strings.TrimSuffix(name, ".zst"), ".zstd"), g.reader(z), nil, depth+1, g)
	}
	f := onDisk
	if f != nil {
		o.passedAll(f)
	} else {
		copied, err := spool(o.ctx, buffered)
		if err != nil {
			return o.damage(at, err)
		}
		defer copied.Close()
		f = copied.File
	}
	return o.zip(name, f, depth+1, within)
}

// Zstd returns a reader of a zstd stream, which must be closed. The size of what it expands to is not limited.
func Zstd(r io.Reader) (io.ReadCloser, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(256<<20))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}

// passedAll counts the whole of a file that is read in random order.
func (o *opening) passedAll(f *os.File) {
	if info, err := f.Stat(); err == nil && o.passed != nil {
		o.passed(info.Size())
	}
}

// zip reads the files of a zip archive by name, files of a folder before its subfolders.
func (o *opening) zip(name string, f *os.File, depth int, within *guard) error {
	info, err := f.Stat()
	if err != nil {
		return o.damage(name, err)
	}
	z, err := zip.NewReader(f, info.Size())
	if err != nil {
		return o.damage(name, fmt.Errorf("zip: %w", err))
	}
	g := within
	if g == nil {
		g = &guard{limits: o.limits, in: info.Size}
	}
	if err := overlap(z.File); err != nil {
		return o.damage(name, err)
	}
	folders := make(map[string][]*zip.File)
	for _, member := range z.File {
		if err := o.count(); err != nil {
			return o.damage(name, err)
		}
		within := path.Join(name, member.Name)
		switch {
		case !fs.ValidPath(strings.TrimSuffix(member.Name, "/")):
			o.skip(Damaged(Position{File: name, Inside: fmt.Sprintf("%q", member.Name)}, fmt.Errorf("path outside of the archive: %w", ErrRefused)))
		case member.Mode().IsDir():
		case !member.Mode().IsRegular():
			o.skip(Damaged(Position{File: within}, fmt.Errorf("not a regular file: %w", ErrRefused)))
		default:
			dir := path.Dir(member.Name)
			folders[dir] = append(folders[dir], member)
		}
	}
	dirs := make([]string, 0, len(folders))
	for dir := range folders {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		if err := o.zipFolder(name, dir, folders[dir], depth, g); err != nil {
			return err
		}
	}
	return nil
}

// zipFolder reads the files of a folder of an archive in the order of their names.
func (o *opening) zipFolder(archive, dir string, members []*zip.File, depth int, g *guard) error {
	slices.SortStableFunc(members, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	byName := make(map[string]*zip.File, len(members))
	names := make([]string, 0, len(members))
	for _, m := range members {
		base := path.Base(m.Name)
		if byName[base] != nil {
			o.skip(Damaged(Position{File: path.Join(archive, m.Name)}, fmt.Errorf("duplicate file name: %w", ErrRefused)))
			continue
		}
		byName[base] = m
		names = append(names, base)
	}
	open := func(_ context.Context, name string) (io.ReadCloser, error) {
		r, err := byName[name].Open()
		if err != nil {
			return nil, err
		}
		return readCloser{g.reader(r), r}, nil
	}
	names, err := o.grouped(path.Join(archive, dir), names, g, open)
	if err != nil {
		return err
	}
	for _, base := range names {
		m := byName[base]
		name := path.Join(archive, m.Name)
		r, err := m.Open()
		if err != nil {
			if err := o.damage(name, err); err != nil {
				return err
			}
			continue
		}
		err = o.file(name, g.reader(r), nil, depth, g)
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func compression(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "gzip"
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd"
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return "zip"
	}
	return ""
}
