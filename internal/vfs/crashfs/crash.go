package crashfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash says what of the changes that are not durable is found after a crash.
// The zero value is [KeepNone].
type Crash struct {
	kill    bool
	survive func(log []change) survivors
}

// survivors are the changes of names that are found on the disk, in order, and
// the contents of files where they are not simply the durable ones.
type survivors struct {
	links    []*link
	contents map[*file][]byte
}

// KeepNone loses power, and all that is not durable.
func KeepNone() Crash { return Crash{} }

// KeepAll kills the process, not the machine: everything is found as it was.
// What was not durable still is not, and a later crash may lose it.
func KeepAll() Crash { return Crash{kill: true} }

// KeepPrefix loses power when the first n changes that are not durable have
// reached the disk, of all files and directories in the order they were made,
// and, if the next one is a write, its first torn bytes.
func KeepPrefix(n, torn int) Crash {
	return Crash{survive: func(log []change) survivors {
		n := min(n, len(log))
		kept := slices.Clone(log[:n])
		if n < len(log) && log[n].edit != nil && !log[n].edit.truncate {
			part := *log[n].edit
			part.data = part.data[:min(torn, len(part.data))]
			if len(part.data) > 0 {
				kept = append(kept, change{edit: &part})
			}
		}
		s := survivors{contents: map[*file][]byte{}}
		for _, c := range kept {
			if c.link != nil {
				s.links = append(s.links, c.link)
				continue
			}
			f := c.edit.file
			if _, ok := s.contents[f]; !ok {
				s.contents[f] = slices.Clone(f.durable)
			}
			s.contents[f] = c.edit.apply(s.contents[f])
		}
		return s
	}}
}

// Random loses power while the disk is writing in an order of its own. For each
// file, every sector of 512 bytes is found in any of the versions it had since
// the last Sync, whatever the others are, and the size in any of its own; a
// sector found beyond the size extends the file, with zeros in between. For
// each directory, the first few changes are found.
func Random(rng *rand.Rand) Crash {
	return Crash{survive: func(log []change) survivors {
		return survivors{links: someLinks(rng, log), contents: someContents(rng, log)}
	}}
}

// Crash returns a new, independent file system as c finds this one afterwards,
// without any faults armed. This one is dead from here on; Crash can be called
// again to see another outcome of the same crash.
func (fsys *FS) Crash(c Crash) *FS {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	fsys.dead = true
	if c.kill {
		return fsys.clone()
	}
	var s survivors
	if c.survive != nil {
		s = c.survive(fsys.log)
	}
	return &FS{root: s.mount(fsys.root)}
}

// mount returns a copy of the tree below root as found on the disk.
func (s survivors) mount(root *dir) *dir {
	found := map[*dir]map[string]entry{}
	names := func(d *dir) map[string]entry {
		if _, ok := found[d]; !ok {
			found[d] = maps.Clone(d.durable)
		}
		return found[d]
	}
	for _, l := range s.links {
		l.apply(names(l.dir))
	}
	var read func(d *dir) *dir
	read = func(d *dir) *dir {
		onDisk := newDir()
		for name, e := range names(d) {
			if e.dir != nil {
				e = entry{dir: read(e.dir)}
			} else {
				e = entry{file: s.read(e.file)}
			}
			onDisk.live[name], onDisk.durable[name] = e, e
		}
		return onDisk
	}
	return read(root)
}

// read returns a file as found on the disk.
func (s survivors) read(f *file) *file {
	content, ok := s.contents[f]
	if !ok {
		content = f.durable
	}
	return &file{live: slices.Clone(content), durable: slices.Clone(content)}
}
