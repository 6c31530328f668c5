package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
)

// dirLock keeps other processes out of a store. The operating system holds the
// lock and lets go of it however the process ends; what the file says is only
// for the one who is refused.
type dirLock struct{ file *os.File }

// lockOwner is what the lock file says.
type lockOwner struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// errWouldBlock is returned by tryLock when another holds the lock.
var errWouldBlock = errors.New("held by another")

func lockDir(dir string) (*dirLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		defer f.Close()
		if errors.Is(err, errWouldBlock) {
			return nil, lockedBy(dir, f)
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	l := &dirLock{file: f}
	if err := l.describe(); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return l, nil
}

// describe writes who holds the lock.
func (l *dirLock) describe() error {
	host, _ := os.Hostname() // empty is as good as any other guess
	owner := lockOwner{PID: os.Getpid(), Host: host, Command: strings.Join(os.Args, " "), Since: time.Now().UTC()}
	if len(owner.Command) > 200 {
		owner.Command = strings.ToValidUTF8(owner.Command[:200], "") + "…"
	}
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

func lockedBy(dir string, f *os.File) error {
	held := &backend.LockedError{Path: dir}
	b := make([]byte, 4096)
	n, _ := f.ReadAt(b, 0)
	var owner lockOwner
	if json.Unmarshal(b[:n], &owner) == nil {
		held.PID, held.Host, held.Command, held.Since = owner.PID, owner.Host, owner.Command, owner.Since
	}
	return held
}

func (l *dirLock) release() error { return l.file.Close() }
