package follow

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// watching has the watched folders. Folders that the notifier cannot watch are polled.
type watching struct {
	notify notifier // nil if all folders are polled
	on     bool     // more than a single scan
	none   string   // why there is no notifier
	// folders are the folders that may contain files, with the followed ones that they belong to.
	folders  map[string][]*folder
	polled   map[string]int64 // folders by the time of their last change
	awaited  map[string]bool  // folders in which a followed one may appear
	reported map[string]bool  // reasons that were reported
	next     time.Time        // when to poll
	polls    int
}

// begin starts watching.
func (w *watching) begin(open func() (notifier, error)) error {
	w.on = true
	w.folders, w.polled = make(map[string][]*folder), make(map[string]int64)
	w.awaited, w.reported = make(map[string]bool), make(map[string]bool)
	notify, err := open()
	if err != nil {
		w.none = err.Error()
		return nil
	}
	w.notify = notify
	return nil
}

func (w *watching) close() {
	if w.notify != nil {
		w.notify.close()
	}
}

func (w *watching) ready() <-chan struct{} {
	if w.notify == nil {
		return nil
	}
	return w.notify.ready()
}

func (w *watching) take() ([]string, bool) {
	if w.notify == nil {
		return nil, false
	}
	return w.notify.take()
}

// add watches a folder of a followed one. If the folder is polled, it returns the reason, each reason once. A folder that is
// added again is watched again, because another one may have taken its name.
func (w *watching) add(dir string, p *folder) (reason string) {
	if !w.on {
		return ""
	}
	if known := w.folders[dir]; !slices.Contains(known, p) {
		w.folders[dir] = append(known, p)
	}
	return w.observe(dir)
}

// observe watches or polls a folder.
func (w *watching) observe(dir string) (reason string) {
	if reason = w.refused(dir); reason == "" {
		delete(w.polled, dir)
		return ""
	}
	w.polled[dir] = modified(dir)
	if w.reported[reason] || reason == unreadable {
		return ""
	}
	w.reported[reason] = true
	return reason
}

// refused starts watching a folder, or returns why that is impossible.
func (w *watching) refused(dir string) string {
	if w.notify == nil {
		return w.none
	}
	if isRemote(dir) {
		return "its file system does not report changes that other machines make"
	}
	switch err := w.notify.add(dir); {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return ""
	case errors.Is(err, fs.ErrPermission):
		return unreadable
	default:
		return err.Error()
	}
}

// unreadable is the reason to poll an unreadable folder, whose error is reported elsewhere.
const unreadable = "permission denied"

// await watches for a folder to appear or to go away.
func (w *watching) await(root string) {
	if !w.on {
		return
	}
	for dir := nearest(root); ; {
		w.awaited[dir] = true
		w.observe(dir)
		now := nearest(root)
		if now == dir {
			return
		}
		dir = now // it appeared or went away in the meantime
	}
}

// nearest returns the nearest existing folder above a path.
func nearest(path string) string {
	dir := filepath.Dir(path)
	for !isFolder(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	return dir
}

// release stops watching folders that are no longer the nearest ones above a followed one.
func (w *watching) release(followed []*folder) {
	for dir := range w.awaited {
		if slices.ContainsFunc(followed, func(p *folder) bool { return nearest(p.root) == dir }) {
			continue
		}
		delete(w.awaited, dir)
		if len(w.folders[dir]) == 0 {
			w.drop(dir)
		}
	}
}

// drop stops watching a folder.
func (w *watching) drop(dir string) {
	delete(w.polled, dir)
	if w.notify != nil {
		w.notify.remove(dir)
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// modified returns the modification time of a folder, or 0.
func modified(dir string) int64 {
	info, err := os.Lstat(dir)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

func (w *watching) watches(dir string) bool { return len(w.folders[dir]) > 0 || w.awaited[dir] }

func (w *watching) foldersAt(dir string) []*folder { return slices.Clone(w.folders[dir]) }

// forget stops watching a folder that is gone, and those below it.
func (w *watching) forget(dir string) {
	for path := range w.folders {
		if within(path, dir) {
			delete(w.folders, path)
			w.drop(path)
		}
	}
	for path := range w.awaited {
		if within(path, dir) {
			delete(w.awaited, path)
			w.drop(path)
		}
	}
}

// Folders that cannot be watched are listed every pollEvery, and their files that changed within pollRecent are
// examined. Every pollAll times, all of their files are examined.
const (
	pollEvery  = 5 * time.Second
	pollRecent = time.Hour
	pollAll    = 60
)

// nextPoll returns the time of the next poll, or zero if nothing is polled.
func (w *watching) nextPoll(now time.Time) time.Time {
	switch {
	case len(w.polled) == 0:
		w.next = time.Time{}
	case w.next.IsZero():
		w.next = now.Add(pollEvery)
	}
	return w.next
}
