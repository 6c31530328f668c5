package sharing

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
)

const (
	// lookForWriters is how often a reader looks whether a process waits that can write.
	lookForWriters = 50 * time.Millisecond
	// giveWay is for how long a reader that gave the store up leaves it to writers. It is longer
	// than their pauses.
	giveWay = 2 * longPause
)

// read opens the store without writing to it. The lock is shared with other readers. It keeps out
// those who write, so it is given up as soon as one of them wants it.
func (e *Engine) read(ctx context.Context) (*handle, error) {
	if at := e.gaveWay.Load(); at != nil && time.Since(*at) < giveWay {
		return nil, fmt.Errorf("open store %s: %w", e.dir, &backend.LockedError{Path: e.dir})
	}
	o := e.o.Options
	o.Wait, o.Waiting = 0, nil
	asked := e.askedFor()
	own, err := embedded.Open(ctx, e.dir, o)
	if err != nil {
		return nil, err
	}
	h := &handle{Engine: own, own: own, reads: true, asked: asked, done: make(chan struct{})}
	return h, nil
}

// yieldToWriters gives a reader's handle up when a process asks for the lock.
func (e *Engine) yieldToWriters(h *handle) {
	tick := time.NewTicker(lookForWriters)
	defer tick.Stop()
	for e.askedFor().Equal(h.asked) {
		select {
		case <-h.done:
			return
		case <-tick.C:
		}
	}
	now := time.Now()
	e.gaveWay.Store(&now)
	e.lose(h)
}

// askedFor returns when a process last asked for the lock that it did not get. There may be no
// lock yet, because a reader makes none.
func (e *Engine) askedFor() time.Time {
	if info, err := os.Lstat(filepath.Join(e.dir, embedded.LockFile)); err == nil && info.Mode().Type() == fs.FileMode(0) {
		return info.ModTime()
	}
	return time.Time{}
}
