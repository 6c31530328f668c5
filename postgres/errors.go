package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
)

// errBehind is returned for a row that was not written because the head has changed.
var errBehind = errors.New("another process wrote to the log")

// errDiverged is returned if the log does not have the head that a process knows.
var errDiverged = errors.New("the log has another history")

// errCollected is errDiverged after a collection.
var errCollected = fmt.Errorf("garbage was collected: %w", errDiverged)

// errLagging is returned by a standby whose log ends before a row that a process knows, perhaps from another standby.
var errLagging = fmt.Errorf("the standby has not received all commits yet: %w", sqladapter.ErrBusy)

// errGone is returned if a state can no longer be read: there was a collection, the server lost it, or its versions were pruned.
var errGone = fmt.Errorf("the state is gone: %w", backend.ErrExpired)

// errRemoved is returned when the row of the store is gone.
var errRemoved = fmt.Errorf("the store was removed: %w", backend.ErrNotFound)

// errUnfilled is returned for a store whose entries have to be made from the log first.
var errUnfilled = errors.New("the store of an earlier version has no entries")

var errClosed = fmt.Errorf("store: %w", backend.ErrClosed)

// ErrRestoring is returned for a database whose tables have no keys yet, as while it is restored from a dump.
var ErrRestoring = errors.New("the tables of stores have no keys: the database is being restored, or they were removed")

// asBehind returns errBehind for a state that can no longer be read.
func asBehind(err error) error {
	if errors.Is(err, errGone) {
		return fmt.Errorf("%w: %w", errBehind, err)
	}
	return err
}

// asExpired returns ErrExpired for ErrClosed.
func asExpired(err error) error {
	if errors.Is(err, backend.ErrClosed) {
		return fmt.Errorf("%w: %w", backend.ErrExpired, err)
	}
	return err
}

// SQLSTATE codes.
const (
	undefinedTable    = "42P01"
	undefinedColumn   = "42703"
	invalidTable      = "42P16"
	duplicateTable    = "42P07"
	duplicateObject   = "42710"
	uniqueViolation   = "23505"
	serializationFail = "40001"
	deadlock          = "40P01"
	insufficient      = "42501"
	divisionByZero    = "22012"
	noSuchKey         = "42P10"
	lockTimeout       = "55P03"
	queryCanceled     = "57014"

	transactionTimeout  = "25P04"
	readOnlyTransaction = "25006"
)

func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// commitError is the error of a commit. Unless the server says that it refused, it is not known whether the
// transaction was applied.
type commitError struct{ error }

func (e commitError) Unwrap() error { return e.error }

// unsentError is the error of an operation that got no connection: nothing was sent.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// unsent returns the error of a wait for a connection. It is ErrBusy if none was free in time.
func unsent(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: no connection was free in time: %w", sqladapter.ErrBusy, err)
	}
	return unsentError{err}
}

// mayHaveWritten reports whether a write with this error may have been done.
func mayHaveWritten(err error) bool {
	if err == nil || pgconn.SafeToRetry(err) || errors.As(err, new(unsentError)) {
		return false
	}
	state := sqlState(err)
	if errors.As(err, new(commitError)) {
		return state != serializationFail && state != deadlock && !strings.HasPrefix(state, "23") // constraints
	}
	switch state {
	case "", "40003": // no answer; completion unknown
		return true
	case queryCanceled: // ErrBusy if the transaction failed; else a pooler gave up on it
		return !errors.Is(err, sqladapter.ErrBusy)
	}
	return postgres.Dialect{}.Classify(err) == sqladapter.Lost
}

// isTransient reports whether an error is one of the connection or the server, so that the operation can be retried.
func isTransient(err error) bool {
	if err == nil {
		return false
	}
	switch (postgres.Dialect{}).Classify(err) {
	case sqladapter.Lost, sqladapter.Busy:
		return true
	}
	return pgconn.SafeToRetry(err) || errors.Is(err, sqladapter.ErrBusy)
}
