package lineage

import (
	"errors"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

var (
	// ErrNotFound is returned when a name, id or other subject does not exist.
	ErrNotFound = backend.ErrNotFound
	// ErrExists is returned when an id or name is taken.
	ErrExists = backend.ErrExists
	// ErrConflict is returned when the state that a change was based on has changed.
	ErrConflict = backend.ErrConflict
	// ErrTipMoved is returned when a context does not point to the tip that the caller expected. It matches
	// ErrConflict.
	ErrTipMoved = backend.ErrTipMoved
	// ErrInvalid is returned for arguments that are invalid in any state of the store.
	ErrInvalid = backend.ErrInvalid
	// ErrCorrupt is returned when stored bytes are damaged.
	ErrCorrupt = backend.ErrCorrupt
	// ErrErased is returned for content that was erased.
	ErrErased = backend.ErrErased
	// ErrReadOnly is returned for a change to a store that was opened read-only or is damaged, or whose disk has
	// failed.
	ErrReadOnly = backend.ErrReadOnly
	// ErrUncertain is returned for a change that was being written when the disk failed. The change may be lost. The
	// error also matches ErrReadOnly, because the store accepts no more changes. Open it again and check before
	// repeating the change.
	ErrUncertain = backend.ErrUncertain
	// ErrDiverged is returned to a watcher, and by Copy, if the last commit that they know is not in the store: the
	// commit was lost, or the store is a copy that was continued differently.
	ErrDiverged = backend.ErrDiverged
	// ErrCollected is returned by Copy for a copy in which garbage was collected. It matches
	// ErrDiverged.
	ErrCollected = backend.ErrCollected
	// ErrLocked is returned when another process has the store open and it cannot be shared.
	ErrLocked = backend.ErrLocked
	// ErrClosed is returned after Close.
	ErrClosed = backend.ErrClosed
	// ErrExpired is returned by a sequence whose store was closed while it was read.
	ErrExpired = backend.ErrExpired
	// ErrTooLarge is returned when a limit is exceeded.
	ErrTooLarge = backend.ErrTooLarge
	// ErrNotRegular is returned when a name in a store's directory is not the expected regular file
	// or directory, but for example a symbolic link or a pipe. Nothing is read or written through
	// it.
	ErrNotRegular = vfs.ErrNotRegular
	// ErrOtherUser is returned for a thread that belongs to a different user.
	ErrOtherUser = errors.New("belongs to a different user")
	// ErrProtected is returned when something that a thread needs would be deleted.
	ErrProtected = errors.New("protected")
)

// Errors with details, for errors.As.
type (
	// SubjectError names the subject of an error.
	//
	//	Subject string // what it is: "branch", "thread"
	//	ID      string
	//	Err     error  // the sentinel that it matches
	//	Detail  string // if not empty, explains the error
	SubjectError = backend.SubjectError
	// CorruptError locates damaged bytes. It matches ErrCorrupt.
	//
	//	File   string
	//	Offset int64
	//	What   string // is wrong
	CorruptError = backend.CorruptError
	// LockedError names the process that has a store open. It matches ErrLocked.
	//
	//	Path        string
	//	PID         int // 0 if it is not known
	//	Command     string
	//	Host        string    // of a process that writes
	//	Since       time.Time // when a process that writes opened it
	//	Unreachable bool      // the store could not be used through that process
	LockedError = backend.LockedError
	// TipError is returned when a context does not have the expected tip. It matches ErrTipMoved.
	//
	//	Context          ContextID
	//	Expected, Actual SpanRef
	TipError = backend.TipError
)

func subjectError(subject, id string, err error, detail string) error {
	return &SubjectError{Subject: subject, ID: id, Err: err, Detail: detail}
}

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }
