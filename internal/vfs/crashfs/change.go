package crashfs

import "slices"

// change is something done that is not durable yet. Either field is set.
type change struct {
	edit *edit
	link *link
}

// edit is a change of a file's bytes: a write of data at off, or a truncation
// to the size off.
type edit struct {
	file     *file
	off      int64
	data     []byte // not changed once logged
	truncate bool
	lost     bool // a sync of it failed: no later one will make it durable
}

// apply returns content as it is after the edit, possibly in the same memory.
func (e *edit) apply(content []byte) []byte {
	content = resize(content, e.sizeAfter(int64(len(content))))
	copy(content[e.off:], e.data)
	return content
}

// sizeAfter returns the size after the edit of a file whose size was before.
func (e *edit) sizeAfter(before int64) int64 {
	if e.truncate {
		return e.off
	}
	return max(before, e.off+int64(len(e.data)))
}

// link is a change of names in one directory, atomic: the name removed no longer
// stands for anything, and the name added stands for what. Either may be empty.
type link struct {
	dir            *dir
	removed, added string
	what           entry
}

// apply changes the names of the link's directory.
func (l *link) apply(names map[string]entry) {
	if l.removed != "" {
		delete(names, l.removed)
	}
	if l.added != "" {
		names[l.added] = l.what
	}
}

// relink does l and logs it.
func (fsys *FS) relink(l *link) {
	l.apply(l.dir.live)
	fsys.log = append(fsys.log, change{link: l})
}

// modify does e and logs it.
func (fsys *FS) modify(e *edit) {
	e.file.live = e.apply(e.file.live)
	fsys.log = append(fsys.log, change{edit: e})
}

// settleBytes makes durable what was done to f, except what is lost.
func (fsys *FS) settleBytes(f *file) {
	fsys.log = slices.DeleteFunc(fsys.log, func(c change) bool {
		if c.edit == nil || c.edit.file != f {
			return false
		}
		if !c.edit.lost {
			f.durable = c.edit.apply(f.durable)
		}
		return true
	})
}

// giveUp marks what was done to f as lost, after a sync that failed.
func (fsys *FS) giveUp(f *file) {
	for _, c := range fsys.log {
		if c.edit != nil && c.edit.file == f {
			c.edit.lost = true
		}
	}
}

// settleNames makes the names in d durable.
func (fsys *FS) settleNames(d *dir) {
	fsys.log = slices.DeleteFunc(fsys.log, func(c change) bool {
		if c.link == nil || c.link.dir != d {
			return false
		}
		c.link.apply(d.durable)
		return true
	})
}

// resize returns b with the given length, cut or extended with zeros, possibly
// in the same memory.
func resize(b []byte, size int64) []byte {
	before := int64(len(b))
	if size <= before {
		return b[:size]
	}
	b = slices.Grow(b, int(size-before))[:size]
	clear(b[before:])
	return b
}
