package follow

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// takeChanges handles the reported changes.
func (r *run) takeChanges(ctx context.Context) {
	paths, lost := r.watch.take()
	if lost {
		for _, p := range r.folders {
			r.scan(ctx, p)
		}
		return
	}
	for _, path := range paths {
		r.pathChanged(ctx, path)
	}
}

// pathChanged handles a change of a path: of a file, of a folder, or of a followed folder that appeared or went away.
func (r *run) pathChanged(ctx context.Context, path string) {
	for _, p := range r.folders {
		if !p.there && within(p.root, path) {
			r.scan(ctx, p)
		}
	}
	if r.watch.watches(path) {
		r.folderChanged(ctx, path)
		return
	}
	for _, p := range r.watch.foldersAt(filepath.Dir(path)) {
		if name, ok := p.name(path); ok && !r.filesChanged(p, name) {
			if info, err := os.Lstat(path); err == nil && info.IsDir() {
				for _, f := range r.walk(ctx, p, name, nil) {
					r.look(f)
				}
			}
		}
	}
}

// filesChanged examines the session files that a name stands for: the file itself, and one that it lies beside. It reports whether
// there are any.
func (r *run) filesChanged(p *folder, name string) bool {
	names := []string{name}
	if base := besideOf(name); base != name && exists(filepath.Join(p.real, filepath.FromSlash(base))) {
		names = append(names, base)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return p.file(name) < 0 })
	for _, name := range names {
		if f := r.fileAt(p, name); f != nil {
			r.look(f)
		}
	}
	return len(names) > 0
}

// folderChanged examines a watched folder: the files in it, because another folder may have taken its name, or the
// files that went away with it.
func (r *run) folderChanged(ctx context.Context, dir string) {
	if !exists(dir) {
		r.folderGone(dir)
		return
	}
	for _, p := range r.watch.foldersAt(dir) {
		name, ok := p.name(dir)
		if dir == p.real {
			name, ok = ".", true
		}
		if ok {
			for _, f := range r.walk(ctx, p, name, nil) {
				r.look(f)
			}
		}
	}
	for _, f := range r.files {
		if f.folder != nil && filepath.Dir(f.path) == dir {
			r.look(f)
		}
	}
}

// folderGone examines the files that were in a folder, and waits for the followed folders that were in it.
func (r *run) folderGone(dir string) {
	r.watch.forget(dir)
	for _, f := range r.files {
		if f.folder != nil && within(f.path, dir) {
			r.look(f)
		}
	}
	for _, p := range r.folders {
		if p.there && (within(p.real, dir) || within(p.root, dir)) {
			p.there = false
			r.watch.forget(p.real)
		}
		if !p.there {
			r.watch.await(p.root)
		}
	}
}

// poll examines the folders that cannot be watched, when it is time.
func (r *run) poll(ctx context.Context, now time.Time) {
	w := &r.watch
	if w.next.IsZero() || now.Before(w.next) {
		return
	}
	w.next = time.Time{}
	w.polls++
	all := w.polls%pollAll == 0
	for _, p := range r.folders {
		if !p.there && (all || exists(p.root)) {
			r.scan(ctx, p)
		}
	}
	for dir, was := range w.polled {
		if modification := modified(dir); modification != was || all {
			w.polled[dir] = modification
			r.folderChanged(ctx, dir)
		}
	}
	for _, f := range r.files {
		if _, polled := w.polled[filepath.Dir(f.path)]; polled && f.folder != nil && (all || now.Sub(time.Unix(0, f.now.modified)) < pollRecent) {
			r.look(f)
		}
	}
}
