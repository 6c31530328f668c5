package app

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/lineage-store/lineage/lineage"
)

// Exit codes. Scripts depend on them.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitConflict    = 4
	ExitLocked      = 5
	ExitCorrupt     = 6
	exitPartial     = 7
	ExitDiffers     = 8
	ExitNoHit       = 9
	ExitInterrupted = 130
	ExitTerminated  = 143
)

// UsageError is an error in the command line.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns an error in the command line. Its exit code is ExitUsage.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// hintError adds a hint to an error.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }

func (e *hintError) Unwrap() error { return e.err }

func (e *hintError) Hint() string { return e.hint }

// Hint adds a hint to an error: what to do next.
func Hint(err error, format string, args ...any) error {
	return &hintError{err, fmt.Sprintf(format, args...)}
}

// Outcomes that are not failures of the program and have their own exit codes.
var (
	ErrInterrupted  = errors.New("interrupted")
	ErrPartial      = errors.New("done in part")
	ErrDiffers      = errors.New("differences found")
	ErrNothingFound = errors.New("nothing found")
	ErrDamaged      = fmt.Errorf("damage found: %w", lineage.ErrCorrupt)
)

// Interruption is a signal to terminate. It matches ErrInterrupted.
type Interruption struct{ signal os.Signal }

func (e *Interruption) Error() string { return ErrInterrupted.Error() }

func (e *Interruption) Is(target error) bool { return target == ErrInterrupted }

// code returns the exit code of a process that was ended by the signal.
func (e *Interruption) code() int {
	if e.signal == syscall.SIGTERM {
		return ExitTerminated
	}
	return ExitInterrupted
}
