package crashfs

import "slices"

// apply applies the edit to content, possibly in the same memory.
func (e *edit) apply(content []byte) []byte {
	content = resize(content, e.sizeAfter(int64(len(content))))
	copy(content[e.off:], e.data)
	return content
}

// sizeAfter returns the size of a file after the edit, given the size before.
func (e *edit) sizeAfter(before int64) int64 {
	if e.truncate {
		return e.off
	}
	return max(before, e.off+int64(len(e.data)))
}

// apply changes the names of a directory.
func (l *nameChange) apply(names map[string]dirEntry) {
	if l.removed != "" {
		delete(names, l.removed)
	}
	if l.added != "" {
		names[l.added] = l.what
	}
}

// relink applies and logs l.
func (fsys *FS) relink(l *nameChange) {
	l.apply(l.dir.live)
	fsys.log = append(fsys.log, pendingChange{link: l})
}

// modify applies and logs e.
func (fsys *FS) modify(e *edit) {
	e.file.live = e.apply(e.file.live)
	fsys.log = append(fsys.log, pendingChange{edit: e})
}

// settleBytes makes the edits of f durable, except the lost ones.
func (fsys *FS) settleBytes(f *file) {
	fsys.log = slices.DeleteFunc(fsys.log, func(c pendingChange) bool {
		if c.edit == nil || c.edit.file != f {
			return false
		}
		if !c.edit.lost {
			f.durable = c.edit.apply(f.durable)
		}
		return true
	})
}

// markLost marks the edits of f as lost, after a failed sync.
func (fsys *FS) markLost(f *file) {
	for _, c := range fsys.log {
		if c.edit != nil && c.edit.file == f {
			c.edit.lost = true
		}
	}
}

// settleNames makes the names in d durable.
func (fsys *FS) settleNames(d *dir) {
	fsys.log = slices.DeleteFunc(fsys.log, func(c pendingChange) bool {
		if c.link == nil || c.link.dir != d {
			return false
		}
		c.link.apply(d.durable)
		return true
	})
}

// resize returns b with the given length, truncated or extended with zeros,
// possibly in the same memory.
func resize(b []byte, size int64) []byte {
	before := int64(len(b))
	if size <= before {
		return b[:size]
	}
	b = slices.Grow(b, int(size-before))[:size]
	clear(b[before:])
	return b
}
