package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage/archive"
)

// folder is a followed place.
type folder struct {
	place
	agent Agent // without a name for a folder of Choice.From
	// unread is set if its files are not read: because there is no reader for the agent's format or, with notChosen,
	// because the agent is not chosen.
	unread, notChosen bool
	// there is set while the folder exists. errors are those of the folder and the folders below it.
	there  bool
	errors map[string]error
	real   string // root with links resolved, while it exists
	keeps  time.Duration
}

// deletedSoon reports whether the agent will delete a file soon.
func (r *run) deletedSoon(f *file) bool {
	keeps := f.folder.keeps
	return keeps > 0 && r.clock.Now().Add(SoonTime).Sub(time.Unix(0, f.now.modified)) > keeps
}

// choosePlaces sets the places to follow.
func (r *run) choosePlaces() error {
	for _, agent := range Agents() {
		if !r.options.follows(agent.Name) {
			continue
		}
		for _, p := range agent.places(r.options.Environment) {
			r.addPlace(r.folderOf(agent, p))
		}
	}
	for _, dir := range r.options.From {
		full, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		r.addPlace(&folder{place: placeOf(full, "**/*.jsonl", "**/*.jsonl.zst", "**/*.json", "**/*.db", "**/*.sqlite")})
	}
	return nil
}

// folderOf returns the folder to follow for a place of an agent.
func (r *run) folderOf(agent Agent, p place) *folder {
	p.format = cmp.Or(p.format, agent.Format)
	known := slices.ContainsFunc(r.options.Formats, func(f archive.Format) bool { return f.Name == p.format })
	return &folder{place: p, agent: agent, unread: !known}
}

// readIndex follows the places that are new in a file that lists places.
func (r *run) readIndex(ctx context.Context, f *file) {
	f.state.Agent, f.state.Bytes, f.state.Size, f.state.Modified = f.agent(), f.now.size, f.now.size, r.settled(f, f.now)
	r.changed(f)
	for _, p := range f.folder.agent.places(r.options.Environment) {
		if !slices.ContainsFunc(r.places, func(known *folder) bool { return known.agent.Name == f.agent() && known.root == p.root }) {
			found := r.folderOf(f.folder.agent, p)
			r.addPlace(found)
			r.scan(ctx, found)
		}
	}
}

func (r *run) addPlace(p *folder) {
	if p.agent.keeps != nil {
		p.keeps = p.agent.keeps(r.options.Environment)
	}
	r.places = append(r.places, p)
}

// scanAll scans all folders.
func (r *run) scanAll(ctx context.Context) {
	for _, p := range r.places {
		r.scan(ctx, p)
	}
	// Known files that were not found are gone, unless their folder cannot be read.
	for _, f := range r.files {
		if f.folder == nil && f.state.Gone.IsZero() && context.Cause(ctx) == nil {
			r.look(f)
		}
	}
}

// scan examines everything in a place, or waits for the place to appear.
func (r *run) scan(ctx context.Context, p *folder) {
	p.errors = make(map[string]error)
	real, err := filepath.EvalSymlinks(p.root) // the user may have moved it
	if p.there = err == nil; !p.there {
		if !errors.Is(err, fs.ErrNotExist) {
			r.failFolder(p, p.root, err)
		}
		r.watch.await(p.root)
		if real, err = filepath.EvalSymlinks(p.root); err != nil {
			return
		}
		p.there = true // it appeared in the meantime
	}
	p.real = real
	r.watch.await(p.root) // it may go, or be replaced
	r.watch.release(r.places)
	found := r.walk(ctx, p, ".", nil)
	r.forgetFolderErrors(p)
	slices.SortFunc(found, func(a, b *file) int {
		return cmp.Or(cmp.Compare(a.pattern, b.pattern), cmp.Compare(a.now.modified, b.now.modified), strings.Compare(a.path, b.path))
	})
	event := Event{Kind: Found, Agent: p.agent.Name, Path: p.root, Keeps: p.keeps}
	if p.unread {
		event.Reason = string(NotReadYet)
	}
	for _, f := range found {
		if r.seen(f); f.folder == nil {
			continue
		}
		event.Files++
		event.Bytes += f.now.size
		if isDatabase(f.path) {
			event.Databases++
		}
		if f.queued && r.deletedSoon(f) {
			event.Soon++
		}
	}
	if !p.index {
		r.options.Events(event)
	}
}

// walk returns the matching files in and below a folder of a place, and watches these folders.
func (r *run) walk(ctx context.Context, p *folder, name string, found []*file) []*file {
	if context.Cause(ctx) != nil || !p.folder(name) {
		return found
	}
	dir := filepath.Join(p.real, filepath.FromSlash(name))
	if reason := r.watch.add(dir, p); reason != "" {
		r.options.Events(Event{Kind: Slow, Agent: p.agent.Name, Path: dir, Reason: reason})
	}
	entries, err := os.ReadDir(dir) // later changes are reported
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.failFolder(p, dir, err)
		}
		return found
	}
	delete(p.errors, dir)
	r.setFolderError(dir, "")
	for _, e := range entries {
		below := e.Name()
		if name != "." {
			below = name + "/" + below
		}
		switch {
		case e.IsDir():
			found = r.walk(ctx, p, below, found)
		case p.file(below) >= 0:
			if f := r.fileAt(p, below); f != nil {
				if f.stat() == nil {
					found = append(found, f)
				}
			}
		case e.Type()&fs.ModeSymlink != 0 && p.folder(below):
			link := filepath.Join(dir, e.Name())
			if to := r.leadsTo(link); to != "" {
				r.failFolder(p, link, &linkError{to})
			}
		}
	}
	return found
}

// leadsTo returns the folder that a symbolic link leads to, or "" if that is none, or is followed.
func (r *run) leadsTo(link string) string {
	to, err := filepath.EvalSymlinks(link)
	if err != nil || !isFolder(to) {
		return ""
	}
	for _, p := range r.places {
		root, err := filepath.EvalSymlinks(p.root)
		if err != nil || p.unread || !within(to, root) {
			continue
		}
		if name, err := filepath.Rel(root, to); err == nil && p.folder(filepath.ToSlash(name)) {
			return ""
		}
	}
	return to
}

// linkError is the error for a symbolic link to a folder that is not followed.
type linkError struct{ to string }

func (e *linkError) Error() string {
	return "a symbolic link is not followed: choose the folder that it leads to, --from " + e.to
}

func (e *linkError) Unwrap() error { return archive.ErrRefused }

var errLink = fmt.Errorf("a symbolic link is not followed: %w", archive.ErrRefused)

// failFolder records that a folder cannot be read. Runs after the first one report only another error.
func (r *run) failFolder(p *folder, dir string, err error) {
	p.errors[dir] = err
	if r.folderErrors[dir] != err.Error() {
		r.setFolderError(dir, err.Error())
		r.options.Events(Event{Kind: Failed, Agent: p.agent.Name, Path: dir, Err: err})
	}
}

// setFolderError sets the reported error of a folder, "" for none.
func (r *run) setFolderError(dir, said string) {
	if r.folderErrors[dir] == said {
		return
	}
	if r.folderErrors[dir] = said; said == "" {
		delete(r.folderErrors, dir)
	}
	r.changedFolders[dir] = said
	r.saveSoon()
}

// forgetFolderErrors forgets the errors of a place that it no longer has.
func (r *run) forgetFolderErrors(p *folder) {
	for dir := range r.folderErrors {
		if p.errors[dir] == nil && (within(dir, p.root) || within(dir, p.real)) {
			r.setFolderError(dir, "")
		}
	}
}

// fileAt returns the file with a name in a place, or nil if it belongs to another place.
func (r *run) fileAt(p *folder, name string) *file {
	path := filepath.Join(p.real, filepath.FromSlash(name))
	key := RecordedPath(path)
	f := r.files[key]
	if f == nil {
		f = &file{path: path}
		r.files[key] = f
	}
	if f.folder != nil && f.folder != p {
		return nil
	}
	if f.folder == nil || f.path != path && !exists(f.path) {
		f.folder, f.pattern = p, p.file(name)
		f.move(path)
	}
	if f.path != path {
		return nil // the compressed copy of an existing file
	}
	return f
}

// takeChanges handles the reported changes.
func (r *run) takeChanges(ctx context.Context) {
	paths, lost := r.watch.take()
	if lost {
		for _, p := range r.places {
			r.scan(ctx, p)
		}
		return
	}
	for _, path := range paths {
		r.pathChanged(ctx, path)
	}
}

// pathChanged handles a change of a path: of a file, of a folder, or of a place that appeared or went away.
func (r *run) pathChanged(ctx context.Context, path string) {
	for _, p := range r.places {
		if !p.there && within(p.root, path) {
			r.scan(ctx, p)
		}
	}
	if r.watch.watches(path) {
		r.folderChanged(ctx, path)
		return
	}
	for _, p := range r.watch.placesOf(filepath.Dir(path)) {
		name, ok := p.name(path)
		if !ok {
			continue
		}
		files := []string{name}
		if base := besideOf(name); base != name && exists(filepath.Join(p.real, filepath.FromSlash(base))) {
			files = append(files, base)
		}
		if files = slices.DeleteFunc(files, func(name string) bool { return p.file(name) < 0 }); len(files) > 0 {
			for _, name := range files {
				if f := r.fileAt(p, name); f != nil {
					r.look(f)
				}
			}
			continue
		}
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			for _, f := range r.walk(ctx, p, name, nil) {
				r.look(f)
			}
		}
	}
}

// name returns the path relative to the place, with slashes.
func (p *folder) name(path string) (string, bool) {
	if !p.there || !within(path, p.real) || path == p.real {
		return "", false
	}
	rel, err := filepath.Rel(p.real, path)
	return filepath.ToSlash(rel), err == nil
}

// folderChanged examines a watched folder: the files in it, because another folder may have taken its name, or the
// files that went away with it.
func (r *run) folderChanged(ctx context.Context, dir string) {
	if !exists(dir) {
		r.folderGone(dir)
		return
	}
	for _, p := range r.watch.placesOf(dir) {
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

// folderGone examines the files that were in a folder, and waits for the places that were in it.
func (r *run) folderGone(dir string) {
	r.watch.forget(dir)
	for _, f := range r.files {
		if f.folder != nil && within(f.path, dir) {
			r.look(f)
		}
	}
	for _, p := range r.places {
		if p.there && (within(p.real, dir) || within(p.root, dir)) {
			p.there = false
			r.watch.forget(p.real)
		}
		if !p.there {
			r.watch.await(p.root)
		}
	}
}
