package chat

import (
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
)

var (
	// ErrNotFound is returned when a change refers to what does not exist.
	ErrNotFound = lineage.ErrNotFound
	// ErrExists is returned when an id or name is taken.
	ErrExists = lineage.ErrExists
	// ErrInvalid is returned for what no state of the store could accept.
	ErrInvalid = lineage.ErrInvalid
	// ErrHeadMoved is returned when the head of a branch is not the one that its caller
	// expected it. It matches lineage.ErrConflict.
	ErrHeadMoved = fmt.Errorf("branch head has moved: %w", lineage.ErrConflict)
	// ErrOwnParent is returned for a message that is its own parent.
	ErrOwnParent = errors.New("cannot be its own parent")
	// ErrOtherChat is returned for a message or branch of a different chat.
	ErrOtherChat = errors.New("belongs to a different chat")
	// ErrOtherUser is returned for a chat of a different user.
	ErrOtherUser = lineage.ErrOtherUser
	// ErrNoUser is returned when a chat without a user is opened for a user. Only an update sets
	// its user: a chat of nobody does not become that of the first caller.
	ErrNoUser = errors.New("has no user")
	// ErrSearchUnavailable is returned by stores that cannot search.
	ErrSearchUnavailable = errors.New("search is not available")
)

// Subject is what an Error is about.
type Subject string

// The subjects of errors.
const (
	SubjectChat       Subject = "chat"
	SubjectMessage    Subject = "message"
	SubjectBranch     Subject = "branch"
	SubjectCheckpoint Subject = "checkpoint"
)

// Error says which thing an error is about. It matches its Err.
type Error struct {
	Subject Subject
	// ID is the thing's id, or its name where it was asked for by that.
	ID string
	// ChatID is the chat that it was looked for in, if that is not the subject.
	ChatID string
	Err    error
	// Detail, when not empty, explains.
	Detail string
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s %q", e.Subject, e.ID)
	if e.ChatID != "" {
		s += fmt.Sprintf(" in chat %q", e.ChatID)
	}
	s += ": " + e.Err.Error()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// HeadError has the head of a branch that is not the expected one. It matches ErrHeadMoved.
type HeadError struct {
	BranchID         string
	Expected, Actual Ref
}

func (e *HeadError) Error() string {
	return fmt.Sprintf("branch %q is at %s, expected %s: %v", e.BranchID, quoted(e.Actual), quoted(e.Expected), ErrHeadMoved)
}

func (e *HeadError) Unwrap() error { return ErrHeadMoved }

func quoted(r Ref) string {
	if r == "" {
		return "no message"
	}
	return fmt.Sprintf("message %q", string(r))
}
