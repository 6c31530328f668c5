package lock

import (
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
)

var (
	// ErrHeld is returned when another holder has the lock.
	ErrHeld = errors.New("lock is held")
	// ErrLost is returned, and is the cause of a cancelled context, when a lock ended before its
	// release: its file was removed or replaced, or could not be refreshed in time.
	ErrLost = errors.New("lock was lost")
	// ErrNotHeld is the cause of a context whose lock was released or was not held.
	ErrNotHeld = errors.New("lock is not held")
	// ErrNotRegular is returned when a lock file or its guard is not a regular file, but for
	// example a symbolic link or a pipe. It is not changed.
	ErrNotRegular = vfs.ErrNotRegular
)

// HeldError names the holder of a lock. It matches ErrHeld.
type HeldError struct {
	Path   string // the locked file
	Holder *Info  // never nil
}

func (e *HeldError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("%s: %v by an unknown process", e.Path, ErrHeld)
	}
	return fmt.Sprintf("%s: %v by process %d on %s since %s",
		e.Path, ErrHeld, e.Holder.PID, e.Holder.Hostname, e.Holder.Since.Format(time.RFC3339))
}

func (e *HeldError) Unwrap() error { return ErrHeld }
