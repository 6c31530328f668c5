package derivedfile

import (
	"context"
	"errors"
	"time"

	sqlitedriver "modernc.org/sqlite" // the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
)

// ErrUseless is returned for a file of another store, another history or an older format, and for impossible content. The file is then
// replaced.
var ErrUseless = errors.New("the data does not fit the store")

// isUseless reports whether the data must be rebuilt because its content is wrong or damaged.
// Errors of the store, locks, a full disk and errors of type Outside do not count.
func isUseless(err error) bool {
	if e := (Outside{}); errors.As(err, &e) {
		return false
	}
	if e := (*sqlitedriver.Error)(nil); errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM,
			sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
			return false
		}
		return true
	}
	return errors.Is(err, ErrUseless) || errors.Is(err, lineage.ErrDiverged) || errors.Is(err, derived.ErrOtherStore)
}

// Outside marks an error that comes from the caller's own work and says nothing about the file.
type Outside struct{ error }

// NewOutside wraps an error in Outside.
func NewOutside(err error) Outside { return Outside{err} }

// Unwrap returns the wrapped error.
func (e Outside) Unwrap() error { return e.error }

// busyTimeout is how long SQLite itself waits for another process that writes. It ignores the context meanwhile.
const busyTimeout = 50 * time.Millisecond

// Patience is how long we wait for other processes that write.
var Patience = 10 * time.Second

// Patiently repeats do while another process writes.
func Patiently(ctx context.Context, do func() error) error {
	return patientlyUntil(ctx, time.Time{}, do)
}

// patientlyUntil is Patiently, until a time if that is not zero.
func patientlyUntil(ctx context.Context, until time.Time, do func() error) error {
	deadline := time.Now().Add(Patience)
	if !until.IsZero() && until.Before(deadline) {
		deadline = until
	}
	err := do()
	for isBusy(err) && ctx.Err() == nil && time.Now().Before(deadline) {
		err = do()
	}
	return err
}

// errReaders is returned while other processes read an earlier state of a file.
var errReaders = errors.New("other processes read an earlier state of the file")

func isBusy(err error) bool {
	e := (*sqlitedriver.Error)(nil)
	return errors.Is(err, errReaders) || !errors.As(err, new(Outside)) && errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}
