package app

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
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/sqladapter"
)

// ExitCode is a code and its meaning, for the documentation.
type ExitCode struct {
	Code    int
	Meaning string
}

// ExitCodes returns all exit codes of the program.
func ExitCodes() []ExitCode {
	return []ExitCode{
		{ExitOK, "done"},
		{ExitFailure, "failed for a reason that is not below"},
		{ExitUsage, "the command line is wrong, or asks for something impossible"},
		{ExitNotFound, "a store, thread, context, message or content is not there, is ambiguous, or was erased"},
		{ExitConflict, "a name is taken, something is protected or belongs to another user, or another writer changed it first"},
		{ExitLocked, "another process has the store open"},
		{ExitCorrupt, "stored bytes are not what was written"},
		{exitPartial, "done in part: some items were skipped, and are listed"},
		{ExitDiffers, "a comparison found differences"},
		{ExitNoHit, "a search found nothing"},
		{ExitInterrupted, "interrupted by SIGINT; a store keeps what was done so far"},
		{ExitTerminated, "ended by SIGTERM; a store keeps what was done so far"},
	}
}

// codeOf returns the exit code of an error.
func codeOf(err error) int {
	var usage *UsageError
	var interrupted *Interruption
	matches := func(target error) bool { return errors.Is(err, target) }
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &interrupted):
		return interrupted.code()
	case matches(ErrInterrupted), matches(context.Canceled):
		return ExitInterrupted
	case matches(ErrPartial):
		return exitPartial
	case matches(ErrDiffers):
		return ExitDiffers
	case matches(ErrNothingFound):
		return ExitNoHit
	case errors.As(err, &usage):
		return ExitUsage
	case matches(lineage.ErrLocked):
		return ExitLocked
	case matches(lineage.ErrCorrupt):
		return ExitCorrupt
	case matches(sqladapter.ErrBusy): // nothing was changed, although it matches ErrConflict
		return ExitFailure
	case matches(lineage.ErrExists), matches(lineage.ErrConflict), matches(lineage.ErrProtected), matches(lineage.ErrOtherUser):
		return ExitConflict
	case matches(lineage.ErrNotFound), matches(refs.ErrAmbiguous), matches(lineage.ErrErased), matches(fs.ErrNotExist), matches(sqladapter.ErrNoTables), matches(sqladapter.ErrNoSchema):
		return ExitNotFound
	case matches(lineage.ErrInvalid):
		return ExitUsage
	}
	return ExitFailure
}

// HintOf returns the hint for an error, empty for none.
func HintOf(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	var usage *UsageError
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

// hints are the hints for errors. The first match is used.
var hints = []hintError{
	{lineage.ErrCorrupt, "'lineage verify --deep' lists the damage and how to repair it"},
	{sqladapter.ErrBusy, "nothing was changed; repeat the command when the database is free and can be reached"},
	{derived.ErrSlow, "what was written is kept; repeat the command when the server has less to do, and look for locks in pg_stat_activity"},
	{sqladapter.ErrUncertain, "look whether the change is there before you repeat the command"},
	{sqladapter.ErrNoSchema, "CREATE SCHEMA creates it, or name another with search_path"},
	{sqladapter.ErrDenied, "the user of the database needs SELECT, INSERT, UPDATE and DELETE on its tables; the owner has to open it first"},
	{lineage.ErrConflict, "another writer was first: check with 'lineage log', and repeat the command"},
	{lineage.ErrErased, "its bytes were removed on purpose and cannot be restored"},
	{lineage.ErrReadOnly, "'lineage verify' shows why"},
	{backend.ErrNewerFormat, "a newer version of lineage reads it"},
	{backend.ErrOlderFormat, "import its sources again"},
}

// lockedHint returns the hint for a store that another process has open.
func lockedHint(err error) string {
	var locked *lineage.LockedError
	if errors.As(err, &locked) && locked.PID != 0 {
		return fmt.Sprintf("--wait 1m waits for process %d to end", locked.PID)
	}
	return "--wait 1m waits for it to end"
}

// NotWaited adds a hint about a locked store to the error of a command to which --wait does not apply.
func NotWaited(err error) error {
	if errors.Is(err, lineage.ErrLocked) {
		return Hint(err, "nothing was copied: end that process first")
	}
	return err
}

// Fail prints an error and returns its exit code.
func (a *App) Fail(err error) int {
	code := codeOf(err)
	if err == nil || errors.Is(err, ErrDiffers) {
		return code
	}
	record := records.Error{Code: code, Error: Saying(err), Hint: HintOf(err)}
	if a.elsewhere != "" && (errors.Is(err, ErrNothingFound) || errors.Is(err, lineage.ErrNotFound)) {
		record.Hint = strings.TrimPrefix(record.Hint+"; "+a.elsewhere, "; ")
	}
	if a.JSON {
		line, _ := records.Encode(&record) // strings always marshal
		a.Err.W.Write(line)
		return code
	}
	fmt.Fprintln(a.Err.W, a.Err.Paint(screen.Red, "lineage: ")+screen.Line(record.Error))
	if record.Hint != "" {
		fmt.Fprintln(a.Err.W, a.Err.Paint(screen.Dim, "hint: "+screen.Line(record.Hint)))
	}
	return code
}

// Saying returns the text of an error on one line. Joined errors are separated by semicolons.
func Saying(err error) string {
	var message strings.Builder
	var lines []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if line == "" || slices.Contains(lines, line) { // a driver repeats what each attempt failed with
			continue
		}
		if n := len(lines); n > 0 && strings.HasSuffix(lines[n-1], ":") {
			message.WriteByte(' ')
		} else if n > 0 {
			message.WriteString("; ")
		}
		lines = append(lines, line)
		message.WriteString(line)
	}
	return message.String()
}
