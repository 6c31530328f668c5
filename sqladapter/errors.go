package sqladapter

import (
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
)

var (
	// ErrForeign is returned when the documented tables exist but have other columns.
	ErrForeign = errors.New("database belongs to something else")
	// ErrNoTables is returned when tables are missing and Options.Schema does not let Open create
	// them.
	ErrNoTables = errors.New("tables of chats are missing")
	// ErrNoSchema is returned when the schema for the tables does not exist: CREATE SCHEMA creates
	// it.
	ErrNoSchema = errors.New("schema of the search path does not exist")
	// ErrNewer is returned for a database that a newer version has migrated.
	ErrNewer = errors.New("database was made by a newer version")
	// ErrBusy is returned when other transactions were in the way, or the database could not be reached, for longer
	// than Options.Patience. Nothing was changed. It matches lineage.ErrConflict.
	ErrBusy error = busyError{}
	// ErrUncertain is returned when the connection was lost, or the context ended, during a commit. All or nothing
	// was committed: check before repeating the change.
	ErrUncertain = errors.New("not known whether the change was committed")
	// ErrDenied is returned when the database refuses an operation: a right is missing, the login
	// failed, or the database is read-only.
	ErrDenied = errors.New("database does not allow this")
	// ErrCorrupt is returned for rows that contradict each other.
	ErrCorrupt = errors.New("database contradicts itself")
	// ErrOtherTables is returned when a projection has content and structure and the new one does not, or the
	// reverse, and for a projection of another format.
	ErrOtherTables = errors.New("database was projected with other tables")
	// ErrUnchanged is returned by the function of a DB.Write that has nothing to change: the
	// transaction is rolled back, and Write returns nil.
	ErrUnchanged = errors.New("nothing to change")
)

// TableError names the table that an error is about. It matches its Err.
type TableError struct {
	Table  string
	Err    error
	Detail string
}

func (e *TableError) Error() string {
	return fmt.Sprintf("table %q: %v: %s", e.Table, e.Err, e.Detail)
}

func (e *TableError) Unwrap() error { return e.Err }

type busyError struct{}

func (busyError) Error() string        { return "database is busy or cannot be reached" }
func (busyError) Is(target error) bool { return target == backend.ErrConflict }
