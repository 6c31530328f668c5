package archive

import (
	"archive/zip"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strings"
)

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

// localHeader is the minimum size of a zip file's header before its data.
const localHeader = 30

// overlap refuses a zip archive with overlapping files, in which little data is expanded many
// times.
func overlap(files []*zip.File) error {
	type extent struct{ begin, end int64 }
	var data []extent
	for _, f := range files {
		if f.CompressedSize64 == 0 {
			continue
		}
		begin, err := f.DataOffset()
		if err != nil {
			continue // opening it returns the error
		}
		if f.CompressedSize64 > math.MaxInt64/2 {
			return fmt.Errorf("zip: file %q of %d bytes: %w", f.Name, f.CompressedSize64, ErrRefused)
		}
		data = append(data, extent{begin, begin + int64(f.CompressedSize64)})
	}
	slices.SortFunc(data, func(a, b extent) int { return cmp.Compare(a.begin, b.begin) })
	for i := 1; i < len(data); i++ {
		if data[i].begin < data[i-1].end+localHeader {
			return fmt.Errorf("zip: files overlap at byte %d: %w", data[i].begin, ErrRefused)
		}
	}
	return nil
}

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
