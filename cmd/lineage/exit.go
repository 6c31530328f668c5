package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/sqladapter"
)

// Exit codes. Scripts rely on them.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitLocked      = 5
	exitCorrupt     = 6
	exitPartial     = 7
	exitDiffers     = 8
	exitNoHit       = 9
	exitInterrupted = 130
	exitTerminated  = 143
)

// exitCode is a code and its meaning, for the documentation.
type exitCode struct {
	Code    int
	Meaning string
}

func exitCodes() []exitCode {
	return []exitCode{
		{exitOK, "done"},
		{exitFailure, "failed for another reason than those below"},
		{exitUsage, "the command line is not right, or cannot be satisfied"},
		{exitNotFound, "a store, thread, context, message or content is not there, is ambiguous, or was erased"},
		{exitConflict, "a name is taken, something is protected or belongs to another user, or another writer changed it first"},
		{exitLocked, "another process has the store open"},
		{exitCorrupt, "stored bytes are not what was written"},
		{exitPartial, "done in part: some items were skipped, and are listed"},
		{exitDiffers, "a comparison found differences"},
		{exitNoHit, "a search found nothing"},
		{exitInterrupted, "interrupted by SIGINT; a store keeps what was done so far"},
		{exitTerminated, "ended by SIGTERM; a store keeps what was done so far"},
	}
}

// usageError is about how the command was written.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// hintError adds what to do next.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }
func (e *hintError) Hint() string  { return e.hint }

func hint(err error, format string, args ...any) error {
	return &hintError{err, fmt.Sprintf(format, args...)}
}

// Outcomes that are no failures of the program and have a code of their own.
var (
	errInterrupted  = errors.New("interrupted")
	errPartial      = errors.New("done in part")
	errDiffers      = errors.New("differences found")
	errNothingFound = errors.New("nothing found")
	errDamaged      = fmt.Errorf("damage found: %w", lineage.ErrCorrupt)
)

// codeOf returns the exit code of an error.
func codeOf(err error) int {
	var usage *usageError
	var interrupted *interruption
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &interrupted):
		return interrupted.code()
	case is(errInterrupted), is(context.Canceled):
		return exitInterrupted
	case is(errPartial):
		return exitPartial
	case is(errDiffers):
		return exitDiffers
	case is(errNothingFound):
		return exitNoHit
	case errors.As(err, &usage):
		return exitUsage
	case is(lineage.ErrLocked):
		return exitLocked
	case is(lineage.ErrCorrupt):
		return exitCorrupt
	case is(sqladapter.ErrBusy): // nothing was changed, although it matches ErrConflict
		return exitFailure
	case is(lineage.ErrExists), is(lineage.ErrConflict), is(lineage.ErrProtected), is(lineage.ErrOtherUser):
		return exitConflict
	case is(lineage.ErrNotFound), is(refs.ErrAmbiguous), is(lineage.ErrErased), is(fs.ErrNotExist), is(sqladapter.ErrNoTables), is(sqladapter.ErrNoSchema):
		return exitNotFound
	case is(lineage.ErrInvalid):
		return exitUsage
	}
	return exitFailure
}

// hintOf returns the advice about an error, if there is any.
func hintOf(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	var usage *usageError
	switch {
	case errors.As(err, &usage):
		return "" // the command is named where it is known
	case errors.Is(err, lineage.ErrLocked):
		return lockedHint(err)
	}
	for _, h := range hints {
		if errors.Is(err, h.err) {
			return h.hint
		}
	}
	return ""
}

// hints are the advice about errors. The first that an error matches is given.
var hints = []hintError{
	{lineage.ErrCorrupt, "'lineage verify --deep' lists the damage and how to repair it"},
	{sqladapter.ErrBusy, "nothing was changed; repeat the command when the database is free and can be reached"},
	{sqladapter.ErrUncertain, "look whether the change is there before you repeat the command"},
	{sqladapter.ErrNoSchema, "CREATE SCHEMA creates it, or name another with search_path"},
	{sqladapter.ErrDenied, "the user of the database needs SELECT, INSERT, UPDATE and DELETE on its tables; the owner has to open it first"},
	{lineage.ErrConflict, "another writer was first: check with 'lineage log', and repeat the command"},
	{lineage.ErrErased, "its bytes were removed on purpose and cannot be restored"},
	{lineage.ErrReadOnly, "'lineage verify' shows why"},
	{backend.ErrNewerFormat, "a newer version of lineage reads it"},
	{backend.ErrOlderFormat, "import its sources again"},
}

// lockedHint is the advice about a store that another process has open.
func lockedHint(err error) string {
	var locked *lineage.LockedError
	if errors.As(err, &locked) && locked.PID != 0 {
		return fmt.Sprintf("--wait 1m waits for process %d to end", locked.PID)
	}
	return "--wait 1m waits for it to end"
}

// notWaited adds what to do about a locked store to the error of a command that --wait does
// not apply to.
func notWaited(err error) error {
	if errors.Is(err, lineage.ErrLocked) {
		return hint(err, "nothing was copied: end that process first")
	}
	return err
}

// fail prints an error and returns its exit code.
func (a *app) fail(err error) int {
	code := codeOf(err)
	if err == nil || errors.Is(err, errDiffers) {
		return code
	}
	record := records.Error{Code: code, Error: saying(err), Hint: hintOf(err)}
	if a.json {
		line, _ := records.Encode(&record) // strings always marshal
		a.err.W.Write(line)
		return code
	}
	fmt.Fprintln(a.err.W, a.err.Paint(screen.Red, "lineage: ")+screen.Line(record.Error))
	if record.Hint != "" {
		fmt.Fprintln(a.err.W, a.err.Paint(screen.Dim, "hint: "+screen.Line(record.Hint)))
	}
	return code
}

// saying returns the text of an error on one line. Joined errors have a semicolon between them.
func saying(err error) string {
	var said strings.Builder
	var lines []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if line == "" || slices.Contains(lines, line) { // a driver repeats what each attempt failed with
			continue
		}
		if n := len(lines); n > 0 && strings.HasSuffix(lines[n-1], ":") {
			said.WriteByte(' ')
		} else if n > 0 {
			said.WriteString("; ")
		}
		lines = append(lines, line)
		said.WriteString(line)
	}
	return said.String()
}
