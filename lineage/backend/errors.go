package backend

import (
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/structure"
)

var (
	// ErrNotFound is returned when what was asked for, or what a record points
	// at, does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists is returned when an id or name is taken.
	ErrExists = errors.New("already exists")
	// ErrConflict is returned when a commit was made for a state that has passed.
	ErrConflict = errors.New("conflict")
	// ErrTipMoved is returned when the tip of a context is no longer the one that the caller
	// expected. It matches ErrConflict.
	ErrTipMoved = fmt.Errorf("tip has moved: %w", ErrConflict)
	// ErrInvalid is returned for a commit that no state could accept.
	ErrInvalid = errors.New("invalid")
	// ErrCorrupt is returned when stored bytes are not what was written.
	ErrCorrupt = errors.New("corrupt")
	// ErrReadOnly is returned for a write to a store that only reads: one opened
	// so, damaged, or whose disk failed.
	ErrReadOnly = errors.New("read-only")
	// ErrErased is returned for content whose bytes were removed on purpose.
	ErrErased = errors.New("erased")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("closed")
	// ErrExpired is returned by a snapshot, or in the middle of a sequence, whose state the
	// engine does not keep any more.
	ErrExpired = errors.New("expired")
	// ErrTooLarge is returned for a commit beyond the engine's limit.
	ErrTooLarge = errors.New("too large")
	// ErrUncertain is returned when a commit may have been applied: its durability is not
	// known, or whether it was applied when it was sent before.
	ErrUncertain = errors.New("not known whether it was applied for good")
	// ErrLocked is returned when another process has the store open.
	ErrLocked = errors.New("locked")
	// ErrNewerFormat is returned for a store, or a commit of it, that a newer program wrote.
	ErrNewerFormat = structure.ErrUnknownVersion
	// ErrOlderFormat is returned for a store, or a commit of it, that an older program wrote,
	// which was never released.
	ErrOlderFormat = structure.ErrOldVersion
)

// SubjectError says which thing an error is about. It matches its Err.
type SubjectError struct {
	Subject string // "branch", "run", …
	ID      string
	Err     error
	// Detail, when not empty, explains.
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

// TipError is returned when a context's tip is not the one expected. It matches
// ErrTipMoved and ErrConflict.
type TipError struct {
	Context          structure.ContextID
	Expected, Actual structure.SpanRef
}

func (e *TipError) Error() string {
	return fmt.Sprintf("context %v: tip is %v, expected %v", e.Context, e.Actual, e.Expected)
}

func (e *TipError) Unwrap() error { return ErrTipMoved }

// CorruptError says where stored bytes are not what was written. It matches
// ErrCorrupt.
type CorruptError struct {
	File   string
	Offset int64
	What   string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s at byte %d: %s: %v", e.File, e.Offset, e.What, ErrCorrupt)
}

func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// LockedError says which process has the store open. It matches ErrLocked.
type LockedError struct {
	Path string
	// PID is 0 where the process is not known.
	PID     int
	Command string
	// Host and Since are empty for a process that only reads.
	Host  string
	Since time.Time
	// Unreachable is set when there was no way to use the store through that process.
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

// reach says whether the store can be used through the process that holds it.
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
