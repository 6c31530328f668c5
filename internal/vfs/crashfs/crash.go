package crashfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash determines which changes that are not durable survive a crash.
// The zero value is [KeepNone].
type Crash struct {
	kill    bool
	survive func(log []pendingChange) survivors
}

// survivors are the surviving changes of names, in order, and the contents of
// files that differ from the durable ones.
type survivors struct {
	links    []*nameChange
	contents map[*file][]byte
}

// KeepNone loses power and everything that is not durable.
func KeepNone() Crash { return Crash{} }

// KeepAll kills the process, not the machine: all changes survive. Those that
// were not durable still are not, and a later crash may lose them.
func KeepAll() Crash { return Crash{kill: true} }

// KeepPrefix loses power after the first n changes that are not durable have
// reached the disk, of all files and directories in the order of the
// operations, and, if the next one is a write, its first torn bytes.
func KeepPrefix(n, torn int) Crash {
	return Crash{survive: func(log []pendingChange) survivors {
		n := min(n, len(log))
		kept := slices.Clone(log[:n])
		if n < len(log) && log[n].edit != nil && !log[n].edit.truncate {
			part := *log[n].edit
			part.data = part.data[:min(torn, len(part.data))]
			if len(part.data) > 0 {
				kept = append(kept, pendingChange{edit: &part})
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

// Random loses power while the disk writes in any order. Every sector of 512
// bytes independently has any of its versions since the last Sync of the file,
// and the size of the file is any of its sizes; a surviving sector beyond the
// size extends the file, with zeros in between. Of the changes of each
// directory, a prefix survives.
func Random(rng *rand.Rand) Crash {
	return Crash{survive: func(log []pendingChange) survivors {
		return survivors{links: someLinks(rng, log), contents: someContents(rng, log)}
	}}
}

// Crash returns a new, independent file system in the state after the crash c,
// without armed faults. The original is dead from here on; Crash can be called
// again for another outcome of the same crash.
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

// mount returns a copy of the tree below root as it is on the disk.
func (s survivors) mount(root *dir) *dir {
	found := map[*dir]map[string]dirEntry{}
	names := func(d *dir) map[string]dirEntry {
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
				e = dirEntry{dir: read(e.dir)}
			} else {
				e = dirEntry{file: s.read(e.file)}
			}
			onDisk.live[name], onDisk.durable[name] = e, e
		}
		return onDisk
	}
	return read(root)
}

// read returns a file as it is on the disk.
func (s survivors) read(f *file) *file {
	content, ok := s.contents[f]
	if !ok {
		content = f.durable
	}
	return &file{live: slices.Clone(content), durable: slices.Clone(content)}
}
