package lineage

import (
	"errors"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

var (
	// ErrNotFound is returned when what was asked for does not exist.
	ErrNotFound = backend.ErrNotFound
	// ErrExists is returned when an id or name is taken.
	ErrExists = backend.ErrExists
	// ErrConflict is returned when a change was made for a state that has passed.
	ErrConflict = backend.ErrConflict
	// ErrTipMoved is returned when a context no longer stands where its caller
	// expected it. It matches ErrConflict.
	ErrTipMoved = backend.ErrTipMoved
	// ErrInvalid is returned for what no state of the store could accept.
	ErrInvalid = backend.ErrInvalid
	// ErrCorrupt is returned when stored bytes are not what was written.
	ErrCorrupt = backend.ErrCorrupt
	// ErrErased is returned for content whose bytes were removed on purpose.
	ErrErased = backend.ErrErased
	// ErrReadOnly is returned for a change to a store that only reads: one opened so,
	// damaged, or whose disk failed since it was opened.
	ErrReadOnly = backend.ErrReadOnly
	// ErrUncertain is returned for a change that was applied when the disk failed, so
	// that it may be lost. It also matches ErrReadOnly: the store takes no more changes.
	// Open it again and look at what is there before repeating the change.
	ErrUncertain = backend.ErrUncertain
	// ErrDiverged is returned to a watcher, or by Copy, for a last commit that is not in the store: the store
	// lost it, or is a copy that was continued elsewhere.
	ErrDiverged = backend.ErrDiverged
	// ErrCollected is returned by Copy for a copy in which garbage was collected. It matches
	// ErrDiverged.
	ErrCollected = backend.ErrCollected
	// ErrLocked is returned when another process has the store open.
	ErrLocked = backend.ErrLocked
	// ErrClosed is returned after Close.
	ErrClosed = backend.ErrClosed
	// ErrExpired is returned in the middle of a sequence when the store was closed
	// meanwhile.
	ErrExpired = backend.ErrExpired
	// ErrTooLarge is returned for what exceeds a limit.
	ErrTooLarge = backend.ErrTooLarge
	// ErrNotRegular is returned when a name in a store's directory leads to something else
	// than the file or directory that belongs there, such as a symbolic link or a pipe.
	// Nothing was read or written through it.
	ErrNotRegular = vfs.ErrNotRegular
	// ErrOtherUser is returned for a thread that belongs to a different user.
	ErrOtherUser = errors.New("belongs to a different user")
	// ErrProtected is returned for deleting what a thread cannot be without.
	ErrProtected = errors.New("protected")
)

// Errors with details, for errors.As.
type (
	// SubjectError says which thing an error is about.
	SubjectError = backend.SubjectError
	// CorruptError says where stored bytes are not what was written.
	CorruptError = backend.CorruptError
	// LockedError tells who has the store open.
	LockedError = backend.LockedError
	// TipError tells where a context stands instead. It matches ErrTipMoved.
	TipError = backend.TipError
)

func subjectError(subject, id string, err error, detail string) error {
	return &SubjectError{Subject: subject, ID: id, Err: err, Detail: detail}
}
