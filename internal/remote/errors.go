package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

var (
	// ErrDisconnected is returned when the connection ended before an answer came.
	ErrDisconnected = errors.New("disconnected")
	// ErrMoved is returned by a server that is closing. The request was not executed.
	ErrMoved = errors.New("the process that served the store is closing it")
	// ErrBusy is returned by a server without space for a request. The request was not executed.
	ErrBusy = errors.New("the process that serves the store has no space for the request now")
	// ErrVersion is returned when the other side uses another version of the protocol.
	ErrVersion = errors.New("another version of the protocol")
	// ErrPanicked is returned for a request that made the server panic.
	ErrPanicked = errors.New("panic")
)

// VersionError reports two processes with different versions of the protocol. It matches ErrVersion.
type VersionError struct{ Ours, Theirs uint32 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the other process speaks version %d of the protocol, this one version %d: %v", e.Theirs, e.Ours, ErrVersion)
}

func (e *VersionError) Unwrap() error { return ErrVersion }

// sentinels are the errors that a message encodes by their index in this list.
var sentinels = []error{
	backend.ErrNotFound,
	backend.ErrExists,
	backend.ErrConflict,
	backend.ErrTipMoved,
	backend.ErrInvalid,
	backend.ErrCorrupt,
	backend.ErrReadOnly,
	backend.ErrErased,
	backend.ErrClosed,
	backend.ErrExpired,
	backend.ErrTooLarge,
	backend.ErrUncertain,
	backend.ErrLocked,
	backend.ErrNewerFormat,
	backend.ErrOlderFormat,
	backend.ErrDiverged,
	structure.ErrBrokenAncestry,
	structure.ErrIncomplete,
	structure.ErrMalformed,
	ErrDisconnected,
	ErrMoved,
	ErrBusy,
	ErrPanicked,
	ErrMalformed,
	context.Canceled,
	context.DeadlineExceeded,
	errors.ErrUnsupported,
	fs.ErrNotExist,
	fs.ErrPermission,
	os.ErrDeadlineExceeded,
	backend.ErrCollected,
}

// Forms of errors in a message. Each error type with fields has its own form.
const (
	plainForm = iota
	subjectForm
	tipForm
	corruptForm
	lockedForm
	divergedForm
)

// formOf returns the form of an error itself, without unwrapping it.
func formOf(err error) uint8 {
	switch err.(type) {
	case *backend.SubjectError:
		return subjectForm
	case *backend.TipError:
		return tipForm
	case *backend.CorruptError:
		return corruptForm
	case *backend.LockedError:
		return lockedForm
	case *backend.DivergedError:
		return divergedForm
	}
	return plainForm
}

// Error is an error of the other side. It matches the same sentinels as the original, and wraps the first error with
// fields in it.
type Error struct {
	Text   string
	causes []error
}

func (e *Error) Error() string   { return e.Text }
func (e *Error) Unwrap() []error { return e.causes }

// maxNested limits the nesting of errors in a message.
const maxNested = 8

// failure writes or reads an error.
func failure(w *wire, err *error) { nestedFailure(w, err, 0) }

func nestedFailure(w *wire, err *error, depth int) {
	if depth > maxNested {
		w.fail("errors inside errors")
		return
	}
	form := uint8(plainForm)
	if !w.reading && depth < maxNested {
		form = formOf(*err)
	}
	integer(w, "form", &form)
	switch form {
	case plainForm:
		plainFailure(w, err, depth)
	case subjectForm:
		subjectFailure(w, typed[backend.SubjectError](w, err), depth)
	case tipForm:
		e := typed[backend.TipError](w, err)
		id(w, "context", &e.Context)
		w.Ref("expected", &e.Expected)
		w.Ref("actual", &e.Actual)
	case corruptForm:
		e := typed[backend.CorruptError](w, err)
		w.Text("file", &e.File)
		integer(w, "offset", &e.Offset)
		w.Text("what", &e.What)
	case lockedForm:
		lockedFailure(w, typed[backend.LockedError](w, err))
	case divergedForm:
		e := typed[backend.DivergedError](w, err)
		cursor(w, &e.After)
		cursor(w, &e.Common)
	default:
		w.fail("unknown form of an error")
	}
	if w.reading && w.err != nil {
		*err = w.err
	}
}

// typed returns the error as a *T. When reading, it sets the error to a new T.
func typed[T any, E interface {
	*T
	error
}](w *wire, err *error) *T {
	if w.reading {
		*err = E(new(T))
	}
	return (*T)((*err).(E))
}

func subjectFailure(w *wire, e *backend.SubjectError, depth int) {
	w.Text("subject", &e.Subject)
	w.Text("id", &e.ID)
	w.Text("detail", &e.Detail)
	nestedFailure(w, &e.Err, depth+1)
}

func lockedFailure(w *wire, e *backend.LockedError) {
	w.Text("path", &e.Path)
	integer(w, "pid", &e.PID)
	w.Text("command", &e.Command)
	w.Text("host", &e.Host)
	w.instant("since", &e.Since)
	w.Flag("unreachable", &e.Unreachable)
}

// plainFailure writes or reads the text of an error, the sentinels that it matches, and the first error with fields
// in it. An error that is only a sentinel is read as that sentinel.
func plainFailure(w *wire, err *error, depth int) {
	e := &Error{}
	var codes []int
	var inner error
	if !w.reading {
		e.Text = (*err).Error()
		for i, s := range sentinels {
			if errors.Is(*err, s) {
				codes = append(codes, i)
			}
		}
		if depth < maxNested {
			inner = withFields(*err)
		}
	}
	w.Text("text", &e.Text)
	list(w, "matches", &codes, 1, func(w *wire, code *int) { integer(w, "match", code) })
	if present(w, "fields", inner != nil) {
		nestedFailure(w, &inner, depth+1)
	}
	if !w.reading || w.err != nil {
		return
	}
	for _, code := range codes {
		if code >= 0 && code < len(sentinels) { // a newer program may have more
			e.causes = append(e.causes, sentinels[code])
		}
	}
	if inner != nil {
		e.causes = append(e.causes, inner)
	}
	if *err = e; inner == nil {
		if s := e.sentinel(); s != nil {
			*err = s
		}
	}
}

// sentinel returns the sentinel that is equivalent to the error, or nil.
func (e *Error) sentinel() error {
	for _, s := range e.causes {
		missing := func(other error) bool { return !errors.Is(s, other) }
		if s.Error() == e.Text && !slices.ContainsFunc(e.causes, missing) {
			return s
		}
	}
	return nil
}

// withFields returns the first error with fields in a chain of errors.
func withFields(err error) error {
	if formOf(err) != plainForm {
		return err
	}
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		if inner := u.Unwrap(); inner != nil {
			return withFields(inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range u.Unwrap() {
			if f := withFields(inner); f != nil {
				return f
			}
		}
	}
	return nil
}
