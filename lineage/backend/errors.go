package backend

import (
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/structure"
)

var (
	// ErrNotFound is returned when something that was requested, or that a record refers to,
	// does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists is returned when an id or name is taken.
	ErrExists = errors.New("already exists")
	// ErrConflict is returned when a commit expects a state that has changed.
	ErrConflict = errors.New("conflict")
	// ErrTipMoved is returned when the tip of a context is no longer the one that the caller
	// expected. It matches ErrConflict.
	ErrTipMoved = fmt.Errorf("tip has moved: %w", ErrConflict)
	// ErrInvalid is returned for a commit that is invalid in every state.
	ErrInvalid = errors.New("invalid")
	// ErrCorrupt is returned when stored bytes are damaged.
	ErrCorrupt = errors.New("corrupt")
	// ErrReadOnly is returned for a write to a store that is opened read-only, damaged, or
	// whose disk failed.
	ErrReadOnly = errors.New("read-only")
	// ErrErased is returned for content whose bytes were erased.
	ErrErased = errors.New("erased")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("closed")
	// ErrExpired is returned by a snapshot, or inside a sequence, whose state the engine no
	// longer has.
	ErrExpired = errors.New("expired")
	// ErrTooLarge is returned for a commit beyond the engine's limit.
	ErrTooLarge = errors.New("too large")
	// ErrUncertain is returned when a commit may have been applied: its durability is
	// unknown, or an earlier attempt may have succeeded.
	ErrUncertain = errors.New("not known whether it was applied for good")
	// ErrLocked is returned when another process has the store open.
	ErrLocked = errors.New("locked")
	// ErrNewerFormat is returned for a store or commit of a newer program.
	ErrNewerFormat = structure.ErrUnknownVersion
	// ErrOlderFormat is returned for a store or commit of an older program that was never
	// released.
	ErrOlderFormat = structure.ErrOldVersion
)

// SubjectError identifies the subject of an error. It matches its Err.
type SubjectError struct {
	Subject string // "branch", "run", …
	ID      string
	Err     error
	// Detail, if not empty, explains the error.
	Detail string
}

func (e *SubjectError) Error() string {
	s := fmt.Sprintf("%s %s: %v", e.Subject, e.ID, e.Err)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

func (e *SubjectError) Unwrap() error { return e.Err }

// TipError is returned when a context does not have the expected tip. It matches ErrTipMoved
// and ErrConflict.
type TipError struct {
	Context          structure.ContextID
	Expected, Actual structure.SpanRef
}

func (e *TipError) Error() string {
	return fmt.Sprintf("context %v: tip is %s, expected %s", e.Context, tipText(e.Actual), tipText(e.Expected))
}

func tipText(at structure.SpanRef) string {
	if at.IsZero() {
		return "empty"
	}
	return at.String()
}

func (e *TipError) Unwrap() error { return ErrTipMoved }

// CorruptError locates damaged bytes. It matches ErrCorrupt.
type CorruptError struct {
	File   string
	Offset int64
	What   string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s at byte %d: %s: %v", e.File, e.Offset, e.What, ErrCorrupt)
}

func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// LockedError identifies the process that has the store open. It matches ErrLocked.
type LockedError struct {
	Path string
	// PID is 0 if the process is unknown.
	PID     int
	Command string
	// Host and Since are empty for a process that only reads.
	Host  string
	Since time.Time
	// Unreachable is set if the store could not be used through that process.
	Unreachable bool
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("store %s is %v by another process", e.Path, ErrLocked) + e.reach()
	}
	s := fmt.Sprintf("store %s is %v by process %d (%s)", e.Path, ErrLocked, e.PID, e.Command)
	if !e.Since.IsZero() {
		s += fmt.Sprintf(" on %s since %s", e.Host, e.Since.Format(time.RFC3339))
	}
	return s + e.reach()
}

// reach reports whether the store can be used through the process with the lock.
func (e *LockedError) reach() string {
	switch {
	case !e.Unreachable:
		return ""
	case e.Host == "":
		return ": held by a process that cannot be reached"
	}
	return fmt.Sprintf(": held by a process that cannot be reached (host %s)", e.Host)
}

func (e *LockedError) Unwrap() error { return ErrLocked }
