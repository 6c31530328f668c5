package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
)

// errGuardBusy is returned while another contender holds the guard.
var errGuardBusy = errors.New("lock guard is busy")

// guardPatience limits the wait for the guard. It protects only a few system calls, so that only a
// suspended process holds it longer.
const guardPatience = 5 * time.Second

// guard is the right to change a lock file; see the package comment. Each guard is a separate open
// file, so it excludes goroutines as well as processes.
type guard struct {
	path string
	file *os.File
}

// enterGuard waits for the guard of a lock file. It returns errGuardBusy if that takes too long.
func enterGuard(ctx context.Context, lockFile string) (*guard, error) {
	path := lockFile + ".guard"
	deadline := time.Now().Add(guardPatience)
	for wait := newBackoff(); ; {
		g, err := tryGuard(path)
		if err == nil {
			return g, nil
		}
		if !errors.Is(err, errGuardBusy) || time.Now().After(deadline) {
			return nil, fmt.Errorf("guard %s: %w", path, err)
		}
		if err := wait.pause(ctx); err != nil {
			return nil, err
		}
	}
}

func tryGuard(path string) (*guard, error) {
	var f *os.File
	err := retryTransient(func() (err error) {
		f, err = vfs.OpenFile(path, os.O_RDWR|os.O_CREATE)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	g := &guard{path: path, file: f}
	if !g.isCurrent() {
		return nil, errors.Join(errGuardBusy, unlockFile(f), f.Close())
	}
	return g, nil
}

// isCurrent reports whether the locked file is still the one at its path: its previous owner may
// have removed it, and others may have locked a new one. Only the owner of a current guard removes
// the file, so no other becomes current while this one is held.
func (g *guard) isCurrent() bool {
	locked, err := g.file.Stat()
	if err != nil {
		return false
	}
	atPath, err := os.Lstat(g.path)
	return err == nil && os.SameFile(locked, atPath)
}

// leave releases the guard. Its errors do not matter: a guard file that remains is unlocked, and
// closing it unlocks. It unlocks explicitly because a child process that is being started may share
// the open file for a moment.
func (g *guard) leave() {
	if guardIsRemovable {
		_ = os.Remove(g.path)
	}
	_ = unlockFile(g.file)
	_ = g.file.Close()
}
