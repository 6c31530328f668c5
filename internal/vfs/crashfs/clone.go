package crashfs

import "slices"

// cloner copies a tree and the changes that refer to it, each file and
// directory once.
type cloner struct {
	dirs  map[*dir]*dir
	files map[*file]*file
}

// clone returns a copy of fsys, without its faults.
func (fsys *FS) clone() *FS {
	c := cloner{dirs: map[*dir]*dir{}, files: map[*file]*file{}}
	to := &FS{root: c.dir(fsys.root)}
	for _, ch := range fsys.log {
		to.log = append(to.log, c.change(ch))
	}
	return to
}

func (c cloner) dir(d *dir) *dir {
	if d == nil {
		return nil
	}
	if to, ok := c.dirs[d]; ok {
		return to
	}
	to := newDir()
	c.dirs[d] = to
	for name, e := range d.live {
		to.live[name] = c.entry(e)
	}
	for name, e := range d.durable {
		to.durable[name] = c.entry(e)
	}
	return to
}

func (c cloner) file(f *file) *file {
	if f == nil {
		return nil
	}
	if to, ok := c.files[f]; ok {
		return to
	}
	to := &file{live: slices.Clone(f.live), durable: slices.Clone(f.durable)}
	c.files[f] = to
	return to
}

func (c cloner) entry(e dirEntry) dirEntry {
	return dirEntry{file: c.file(e.file), dir: c.dir(e.dir)}
}

func (c cloner) change(ch pendingChange) pendingChange {
	if ch.edit != nil {
		e := *ch.edit
		e.file = c.file(e.file)
		return pendingChange{edit: &e}
	}
	l := *ch.link
	l.dir, l.what = c.dir(l.dir), c.entry(l.what)
	return pendingChange{link: &l}
}
