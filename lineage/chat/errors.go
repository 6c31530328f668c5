package chat

import (
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
)

var (
	// ErrNotFound is returned when a change refers to something that does not exist.
	ErrNotFound = lineage.ErrNotFound
	// ErrExists is returned when an id or name is taken.
	ErrExists = lineage.ErrExists
	// ErrInvalid is returned for arguments that are invalid in any state of the store.
	ErrInvalid = lineage.ErrInvalid
	// ErrHeadMoved is returned when the head of a branch is not the one that the caller expected. It matches
	// lineage.ErrConflict.
	ErrHeadMoved = fmt.Errorf("branch head has moved: %w", lineage.ErrConflict)
	// ErrOwnParent is returned for a message that is its own parent.
	ErrOwnParent = errors.New("cannot be its own parent")
	// ErrOtherChat is returned for a message or branch of a different chat.
	ErrOtherChat = errors.New("belongs to a different chat")
	// ErrOtherUser is returned for a chat of a different user.
	ErrOtherUser = lineage.ErrOtherUser
	// ErrNoUser is returned when a chat without a user is opened for a user. Only an update sets its user: otherwise
	// the chat would belong to the first caller that opens it.
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

// Error names the subject of an error. It matches its Err.
type Error struct {
	Subject Subject
	// ID is the id of the subject, or its name if it was looked up by name.
	ID string
	// ChatID is the chat in which the subject was looked up, if the subject is not a chat.
	ChatID string
	Err    error
	// Detail, when not empty, explains the error.
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

// HeadError has the actual head of a branch that is not at the expected one. It matches ErrHeadMoved.
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
