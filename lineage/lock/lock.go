package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
)

// Lock is a contender for the lock on a file, and its holder once acquired. Two Locks on one file
// exclude each other, within a process and between processes; goroutines that must exclude each
// other need separate Locks.
//
// A Lock may be used by several goroutines. An acquired Lock must be released: a goroutine
// refreshes it until then.
type Lock struct {
	path string
	opts Options

	mu    sync.Mutex
	held  *holding // nil when not held
	watch watch
}

// New returns a lock on the file at path. The file need not exist; its directory must exist when
// the lock is acquired.
func New(path string, opts Options) *Lock {
	return &Lock{path: path, opts: opts.withDefaults()}
}

// TryAcquire takes the lock if it is free or stale, and reports whether this Lock holds it.
// Acquiring a lock again has no effect, and one Release ends it.
func (l *Lock) TryAcquire() (bool, error) {
	holder, err := l.attempt(context.Background())
	return err == nil && holder == nil, err
}

// Acquire takes the lock, waiting while another contender holds it. If ctx ends first, the error
// matches its cause and, if the lock was held, ErrHeld.
func (l *Lock) Acquire(ctx context.Context) error {
	var last *Info
	for wait := (backoff{}); ; {
		cause := context.Cause(ctx)
		if cause == nil {
			holder, err := l.attempt(ctx)
			switch {
			case err == nil && holder == nil:
				return nil
			case err == nil:
				last = holder
			case !errors.Is(err, vfs.ErrBusy) && ctx.Err() == nil:
				return err
			}
			cause = wait.pause(ctx)
		}
		if cause != nil && last != nil {
			return fmt.Errorf("%w: %w", &HeldError{Path: l.path, Holder: last}, cause)
		}
		if cause != nil {
			return fmt.Errorf("lock %s: %w", l.path, cause)
		}
	}
}

// Release releases the lock. It never removes the lock of another holder, and does nothing if this
// Lock is not held, so it can be repeated. If the lock was lost before, it returns ErrLost: the
// work done under it may have been disturbed. After any other error the lock file may remain
// without being refreshed, and Release can be repeated.
func (l *Lock) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		return nil
	}
	return l.drop()
}

// drop ends the holding and forgets it, unless its file could not be removed.
func (l *Lock) drop() error {
	l.held.stop(ErrNotHeld)
	err := l.held.removeFile()
	if err == nil || errors.Is(err, ErrLost) {
		l.held = nil
	}
	return err
}

// IsLocked reports whether any holder, including this Lock, has the lock.
func (l *Lock) IsLocked() (bool, error) {
	holder, err := l.Holder()
	return holder != nil, err
}

// Holder returns the holder of the lock, or nil if it is free or stale.
func (l *Lock) Holder() (*Info, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lockFile, at, err := l.locate()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	holder, _, err := l.inspect(lockFile, at)
	return holder, err
}

// Context returns a copy of parent that is cancelled when the lock is lost (cause ErrLost) or
// released (cause ErrNotHeld). The caller must call the cancel function when it no longer needs the
// context.
func (l *Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held != nil {
		return l.held.context(parent)
	}
	ctx, cancel := context.WithCancelCause(parent)
	cancel(ErrNotHeld)
	return ctx, func() {}
}

// locate returns the path of the lock file and where this process runs.
func (l *Lock) locate() (lockFile string, at location, err error) {
	if err = l.opts.validate(); err == nil {
		lockFile, err = lockFilePath(l.path)
	}
	if err == nil {
		at, err = here()
	}
	return lockFile, at, err
}

// attempt tries once to take the lock. It returns the other holder, or nil if this Lock has the lock.
func (l *Lock) attempt(ctx context.Context) (*Info, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held != nil {
		if held, err := l.stillOurs(ctx); held || err != nil {
			return nil, err
		}
	}
	lockFile, at, err := l.locate()
	if err != nil {
		return nil, err
	}
	// Most contenders find the lock held and need not enter the guard.
	if holder, _, err := l.inspect(lockFile, at); holder != nil || err != nil {
		return holder, err
	}
	return l.take(ctx, lockFile, at)
}

// take enters the guard, judges the lock again and, if it is free or stale, creates the lock file.
// Otherwise it returns the holder.
func (l *Lock) take(ctx context.Context, lockFile string, at location) (*Info, error) {
	g, err := enterGuard(ctx, lockFile)
	if err != nil {
		return nil, err
	}
	defer leaveGuard(g)
	holder, found, err := l.inspect(lockFile, at)
	if holder != nil || err != nil {
		return holder, err
	}
	if found {
		if err := remove(lockFile); err != nil {
			return nil, fmt.Errorf("clean up stale lock: %w", err)
		}
	}
	r := newRecord(at, l.opts.Stale, time.Now())
	err = create(lockFile, r)
	if errors.Is(err, fs.ErrExist) {
		// A program that does not know the guard has created it.
		return &Info{}, nil
	}
	if err != nil {
		return nil, err
	}
	l.held, l.watch = hold(lockFile, r, l.opts), watch{}
	return nil, nil
}

// stillOurs refreshes the lock and reports whether it is still ours. If it was lost, or a release
// failed half-way, the holding ends.
func (l *Lock) stillOurs(ctx context.Context) (bool, error) {
	if l.held.ctx.Err() == nil {
		err := l.held.renew(ctx)
		if !errors.Is(err, ErrLost) {
			return err == nil, err
		}
		l.held.end(err)
	}
	err := l.drop()
	if errors.Is(err, ErrLost) {
		err = nil
	}
	return false, err
}

// inspect reads the lock file and returns the holder, if any, and whether the file exists.
func (l *Lock) inspect(lockFile string, at location) (holder *Info, found bool, err error) {
	now := time.Now()
	s, err := readLockFile(lockFile)
	if err != nil {
		return nil, false, err
	}
	if s == nil {
		l.watch = watch{}
		return nil, false, nil
	}
	j := judge{location: at, probe: probe, stale: l.opts.Stale}
	if j.isStale(s, now, l.watch.unchanged(s, now)) {
		return nil, true, nil
	}
	return s.info(), true, nil
}
