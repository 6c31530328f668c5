package embedded

import (
	"bytes"
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

// LockFile is the name of the file that is locked by the process that has the store open. Its modification time is the
// last time that another process failed to get the lock.
const LockFile = "LOCK"

// dirLock locks a store: writers exclude all other processes, readers exclude writers. The
// operating system holds the lock and releases it when the process ends; the content of the
// file is only information for processes that are refused.
type dirLock struct {
	file   *os.File // nil for a reader without a lock file
	shared bool
	// description is what a writer has written to the file.
	description []byte
}

// lockOwner is the content of the lock file.
type lockOwner struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// lockTries limits how often a lock file that was replaced while it was locked is opened again. After that, the file system is
// taken for one that numbers open files anew.
const lockTries = 10

// lockDir locks a store. A shared lock does not write to an existing file.
func lockDir(dir string, mode vfs.LockMode) (l *dirLock, err error) {
	for range lockTries {
		l, err = lockFileIn(dir, mode)
		if err != nil || l.current() == nil {
			return l, err
		}
		if err := l.release(); err != nil {
			return nil, err
		}
	}
	return lockFileIn(dir, mode)
}

// lockFileIn locks the file that is in a directory now.
func lockFileIn(dir string, mode vfs.LockMode) (*dirLock, error) {
	shared := mode == vfs.Shared
	f, err := openLock(filepath.Join(dir, LockFile), shared)
	if err != nil {
		return nil, err
	}
	l := &dirLock{file: f, shared: shared}
	if f == nil {
		return l, nil
	}
	if err := vfs.TryLock(f, mode); err != nil {
		defer f.Close()
		if errors.Is(err, vfs.ErrBusy) {
			if !shared {
				touch(f) // readers see the time and can release the lock
			}
			return nil, lockedBy(dir, f)
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	if shared {
		return l, nil
	}
	_ = l.describe() // if this fails, for example on a full disk, the lock is still held
	return l, nil
}

// Held returns a LockedError if another process has a store open for writing.
func Held(dir string) error {
	l, err := lockDir(dir, vfs.Shared)
	if err == nil {
		err = l.release()
	}
	if errors.Is(err, backend.ErrLocked) {
		return err
	}
	return nil
}

// maxLockPause is the longest pause between two attempts to lock.
const maxLockPause = time.Second / 4

// waitForLock locks a store. While another process holds the lock, it tries again for up to wait. waiting, when not
// nil, is called once before that.
func waitForLock(ctx context.Context, dir string, mode vfs.LockMode, wait time.Duration, waiting func(error)) (*dirLock, error) {
	deadline := time.Now().Add(wait)
	for pause := time.Millisecond; ; pause = min(2*pause, maxLockPause) {
		lock, err := lockDir(dir, mode)
		left := time.Until(deadline)
		if !errors.Is(err, backend.ErrLocked) || left <= 0 {
			return lock, err
		}
		if waiting != nil {
			waiting(err)
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(min(pause, left)):
		}
	}
}

// openLock opens the lock file. Only writers create it: a file created by a reader might be
// inaccessible to the store's owner.
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

// describe writes the owner to the file.
func (l *dirLock) describe() error {
	host, _ := os.Hostname() // empty if unknown
	owner := lockOwner{PID: os.Getpid(), Host: host, Command: shortCommand(strings.Join(os.Args, " ")), Since: time.Now().UTC()}
	b, err := json.Marshal(owner)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("write %s: %w", l.file.Name(), err)
	}
	l.description = append(b, '\n')
	if _, err := l.file.WriteAt(l.description, 0); err != nil {
		return fmt.Errorf("write %s: %w", l.file.Name(), err)
	}
	return nil
}

// shortCommand returns a command line shortened for display.
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
		pid, line := holder(f)
		held.PID, held.Command = pid, shortCommand(line)
	}
	return held
}

// current returns an error unless the locked file is still the one at its path. The directory may have been moved, and
// another store may have taken its place.
func (l *dirLock) current() error {
	if l == nil || l.file == nil { // in memory, or a reader without a lock file
		return nil
	}
	locked, err := l.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(l.file.Name())
	if err == nil && (os.SameFile(locked, there) || l.wrote(there)) {
		return nil
	}
	return fmt.Errorf("%s was moved, removed or replaced while the store was open", l.file.Name())
}

// wrote reports whether the file at the path has what this lock has written to it: some file systems number open files anew.
// Whoever locks another file there writes something else.
func (l *dirLock) wrote(there os.FileInfo) bool {
	if len(l.description) == 0 || !there.Mode().IsRegular() || there.Size() != int64(len(l.description)) {
		return false
	}
	b, err := os.ReadFile(l.file.Name())
	return err == nil && bytes.Equal(b, l.description)
}

// release releases the lock. A writer truncates the file first. Otherwise a process that is refused because of
// readers would be told about a writer that is gone.
func (l *dirLock) release() error {
	if l.file == nil {
		return nil
	}
	var err error
	if !l.shared {
		err = l.file.Truncate(0)
	}
	return errors.Join(err, vfs.Unlock(l.file), l.file.Close())
}
