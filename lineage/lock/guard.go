package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
)

// guardPatience limits the wait for the guard. It protects only a few system calls, so that only a
// suspended process holds it longer.
var guardPatience = 5 * time.Second

// enterGuard waits for the guard of a lock file, which is the right to change that file; see the
// package comment. Each guard is a separate open file, so it excludes goroutines as well as
// processes. If the wait takes too long, the error is vfs.ErrBusy.
func enterGuard(ctx context.Context, lockFile string) (*os.File, error) {
	path := lockFile + ".guard"
	deadline := time.Now().Add(guardPatience)
	for wait := (backoff{}); ; {
		g, err := tryGuard(path)
		if err == nil {
			return g, nil
		}
		if !errors.Is(err, vfs.ErrBusy) || time.Now().After(deadline) {
			return nil, fmt.Errorf("guard %s: %w", path, err)
		}
		if err := wait.pause(ctx); err != nil {
			return nil, err
		}
	}
}

func tryGuard(path string) (*os.File, error) {
	f, err := openFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := vfs.TryLock(f, vfs.Exclusive); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !isCurrent(f) {
		return nil, errors.Join(vfs.ErrBusy, vfs.Unlock(f), f.Close())
	}
	return f, nil
}

// isCurrent reports whether the locked file is still the one at its path: its previous owner may
// have removed it, and others may have locked a new one. Only the owner of a current guard removes
// the file, so no other becomes current while this one is held.
func isCurrent(guard *os.File) bool {
	locked, err := guard.Stat()
	if err != nil {
		return false
	}
	atPath, err := os.Lstat(guard.Name())
	return err == nil && os.SameFile(locked, atPath)
}

// leaveGuard releases the guard. Its errors do not matter: a guard file that remains is unlocked, and
// closing it unlocks. It unlocks explicitly because a child process that is being started may share
// the open file for a moment.
func leaveGuard(guard *os.File) {
	if guardIsRemovable {
		_ = os.Remove(guard.Name())
	}
	_ = vfs.Unlock(guard)
	_ = guard.Close()
}
