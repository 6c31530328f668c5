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

	"github.com/lineage-store/lineage/lineage/archive"
)

// readIndex follows the folders that are new in a file that lists folders.
func (r *run) readIndex(ctx context.Context, f *file) {
	f.state.Agent, f.state.Bytes, f.state.Size, f.state.Modified = f.agent(), f.now.size, f.now.size, r.settled(f, f.now)
	r.changed(f)
	for _, p := range f.folder.agent.folders(r.options.Environment) {
		if !slices.ContainsFunc(r.folders, func(known *folder) bool { return known.agent.Name == f.agent() && known.root == p.root }) {
			found := r.newFolder(f.folder.agent, p)
			r.addFolder(found)
			r.scan(ctx, found)
		}
	}
}

// scanAll scans all folders.
func (r *run) scanAll(ctx context.Context) {
	for _, p := range r.folders {
		r.scan(ctx, p)
	}
	// Known files that were not found are gone, unless their folder cannot be read.
	for _, f := range r.files {
		if f.folder == nil && f.state.Gone.IsZero() && context.Cause(ctx) == nil {
			r.look(f)
		}
	}
}

// scan examines everything in a followed folder, or waits for the folder to appear.
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
	r.watch.release(r.folders)
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

// walk returns the matching files in and below a folder of a followed one, and watches these folders.
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
	for _, p := range r.folders {
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
	err = besidePath(dir, err)
	p.errors[dir] = err
	if r.folderErrors[dir] != err.Error() {
		r.setFolderError(dir, err.Error())
		r.options.Events(Event{Kind: Failed, Agent: p.agent.Name, Path: dir, Err: err})
	}
}

// setFolderError sets the reported error of a folder, "" for none.
func (r *run) setFolderError(dir, problem string) {
	if r.folderErrors[dir] == problem {
		return
	}
	if r.folderErrors[dir] = problem; problem == "" {
		delete(r.folderErrors, dir)
	}
	r.changedFolders[dir] = problem
	r.saveSoon()
}

// forgetFolderErrors forgets the errors of a followed folder that it no longer has.
func (r *run) forgetFolderErrors(p *folder) {
	for dir := range r.folderErrors {
		if p.errors[dir] == nil && (within(dir, p.root) || within(dir, p.real)) {
			r.setFolderError(dir, "")
		}
	}
}
