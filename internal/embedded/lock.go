package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// dirLock keeps other processes out of a store: whoever writes from all others, and
// who only reads from those who write. The operating system holds the lock and lets
// go of it however the process ends; what the file says is only for the one who is
// refused.
type dirLock struct {
	file   *os.File // nil where there is none and none can be made, for reading
	shared bool
}

// lockOwner is what the lock file says.
type lockOwner struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// errWouldBlock is returned by tryLock when another holds the lock.
var errWouldBlock = errors.New("held by another")

// lockDir locks a store. With shared, nothing is written where the file is there.
func lockDir(dir string, shared bool) (*dirLock, error) {
	f, err := openLock(filepath.Join(dir, LockFile), shared)
	if err != nil {
		return nil, err
	}
	l := &dirLock{file: f, shared: shared}
	if f == nil {
		return l, nil
	}
	if err := tryLock(f, shared); err != nil {
		defer f.Close()
		if errors.Is(err, errWouldBlock) {
			if !shared {
				touch(f) // readers see it, and can let go
			}
			return nil, lockedBy(dir, f)
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	if shared {
		return l, nil
	}
	_ = l.describe() // where the disk is full, too, the lock is held
	return l, nil
}

// maxLockPause bounds the time between two tries to get the lock.
const maxLockPause = time.Second / 4

// waitForLock locks the store. While another process holds the lock it tries again, for as long as the options say.
func (e *Engine) waitForLock(ctx context.Context) (*dirLock, error) {
	deadline := time.Now().Add(e.opt.Wait)
	for pause := time.Millisecond; ; pause = min(2*pause, maxLockPause) {
		lock, err := lockDir(e.dir, e.opt.ReadOnly)
		left := time.Until(deadline)
		if !errors.Is(err, backend.ErrLocked) || left <= 0 {
			return lock, err
		}
		if e.opt.Waiting != nil {
			e.opt.Waiting(err)
			e.opt.Waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(min(pause, left)):
		}
	}
}

// openLock opens the file, or makes it. A reader makes none: its file may be closed to the user
// of the store.
func openLock(name string, shared bool) (*os.File, error) {
	if !shared {
		return vfs.OpenFile(name, os.O_RDWR|os.O_CREATE)
	}
	f, err := vfs.OpenFile(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// describe writes who holds the lock.
func (l *dirLock) describe() error {
	host, _ := os.Hostname() // empty is as good as any other guess
	owner := lockOwner{PID: os.Getpid(), Host: host, Command: shortCommand(strings.Join(os.Args, " ")), Since: time.Now().UTC()}
	b, err := json.Marshal(owner)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("write %s: %w", l.file.Name(), err)
	}
	if _, err := l.file.WriteAt(append(b, '\n'), 0); err != nil {
		return fmt.Errorf("write %s: %w", l.file.Name(), err)
	}
	return nil
}

// shortCommand returns a command line as it is shown.
func shortCommand(line string) string {
	if len(line) > 200 {
		return strings.ToValidUTF8(line[:200], "") + "…"
	}
	return line
}

func lockedBy(dir string, f *os.File) error {
	held := &backend.LockedError{Path: dir}
	b := make([]byte, 4096)
	n, _ := f.ReadAt(b, 0)
	var owner lockOwner
	if json.Unmarshal(b[:n], &owner) == nil {
		held.PID, held.Host, held.Command, held.Since = owner.PID, owner.Host, owner.Command, owner.Since
	}
	if held.PID == 0 {
		held.PID, held.Command = holder(f)
	}
	return held
}

// release lets go of the lock. Those whom readers keep out are not to be told of a
// writer who is gone.
func (l *dirLock) release() error {
	if l.file == nil {
		return nil
	}
	var err error
	if !l.shared {
		err = l.file.Truncate(0)
	}
	return errors.Join(err, l.file.Close())
}
