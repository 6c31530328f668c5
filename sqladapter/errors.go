package sqladapter

import (
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
)

var (
	// ErrForeign is returned when a database has tables of the documented names that
	// are something else.
	ErrForeign = errors.New("database belongs to something else")
	// ErrNewer is returned for a database that a newer version has changed.
	ErrNewer = errors.New("database was made by a newer version")
	// ErrBusy is returned when other transactions were in the way for too long, or the
	// database could not be reached for too long. Nothing was changed. It matches
	// lineage.ErrConflict.
	ErrBusy = fmt.Errorf("database is busy or cannot be reached: %w", lineage.ErrConflict)
	// ErrUncertain is returned when the connection was lost, or the context ended, while
	// a change was committed. The change is there as a whole or not at all: look before
	// repeating it.
	ErrUncertain = errors.New("not known whether the change was committed")
	// ErrDenied is returned for what the database does not let its user do: rights are
	// missing, the login is refused, or the database is read-only.
	ErrDenied = errors.New("database does not allow this")
	// ErrCorrupt is returned for rows that contradict each other.
	ErrCorrupt = errors.New("database contradicts itself")
)

// TableError says which table an error is about. It matches its Err.
type TableError struct {
	Table  string
	Err    error
	Detail string
}

func (e *TableError) Error() string {
	return fmt.Sprintf("table %q: %v: %s", e.Table, e.Err, e.Detail)
}

func (e *TableError) Unwrap() error { return e.Err }
