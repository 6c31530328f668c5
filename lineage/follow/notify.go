//go:build linux || windows

package follow

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// notifications receives the changes that the system reports.
type notifications struct {
	watcher *fsnotify.Watcher
	signal  chan struct{}
	done    chan struct{}

	mu      sync.Mutex
	changed map[string]bool
	lost    bool
}

// maxChanged limits the number of collected paths. If there are more, everything is examined.
const maxChanged = 100_000

func newNotifier() (notifier, error) {
	watcher, err := fsnotify.NewBufferedWatcher(1024)
	if err != nil {
		return nil, fmt.Errorf("the system cannot report changes: %w", err)
	}
	n := &notifications{watcher: watcher, signal: make(chan struct{}, 1), done: make(chan struct{}), changed: make(map[string]bool)}
	go n.collect()
	return n, nil
}

func (n *notifications) collect() {
	defer close(n.done)
	for {
		select {
		case e, ok := <-n.watcher.Events:
			if !ok {
				return
			}
			n.note(e.Name, false)
		case _, ok := <-n.watcher.Errors: // events were lost
			if !ok {
				return
			}
			n.note("", true)
		}
	}
}

func (n *notifications) note(path string, lost bool) {
	n.mu.Lock()
	if n.lost = n.lost || lost || len(n.changed) >= maxChanged; n.lost {
		clear(n.changed)
	} else {
		n.changed[path] = true
	}
	n.mu.Unlock()
	select {
	case n.signal <- struct{}{}:
	default:
	}
}

func (n *notifications) add(dir string) error {
	err := n.watcher.Add(dir)
	if errors.Is(err, syscall.ENOSPC) {
		return errWatches
	}
	return err
}

var errWatches = errors.New("the system's limit of watches is reached (fs.inotify.max_user_watches)")

func (n *notifications) remove(dir string) { _ = n.watcher.Remove(dir) } // it may be gone

func (n *notifications) ready() <-chan struct{} { return n.signal }

func (n *notifications) take() (paths []string, lost bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for path := range n.changed {
		paths = append(paths, path)
	}
	clear(n.changed)
	lost, n.lost = n.lost, false
	return paths, lost
}

func (n *notifications) close() {
	n.watcher.Close()
	<-n.done
}
