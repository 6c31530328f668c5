package summarize

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

var (
	// ErrNoText is returned when the passages hold no text: a summary of nothing
	// would stand for messages that say something else.
	ErrNoText = errors.New("no text to summarize")
	// ErrNotConfigured is returned when an option that a request needs is missing or
	// cannot be used.
	ErrNotConfigured = errors.New("not configured")
	// ErrBadResponse is returned when the server answers with what it should not.
	ErrBadResponse = errors.New("unusable response")
)

// APIError is returned when the server refuses a request.
type APIError struct {
	Status int
	// Code is the server's name for what is wrong, such as
	// context_length_exceeded. Not every server gives one.
	Code    string
	Message string
	// RetryAfter is how long the server asks to stay away, 0 when it does not say.
	RetryAfter time.Duration
}

func (e *APIError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("server answered %d %s", e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("server answered %d: %s", e.Status, e.Message)
}

// temporary reports that the same request may be answered later. A quota that is
// used up has the status of a rate limit, but waiting does not fill it.
func (e *APIError) temporary() bool {
	switch e.Status {
	case http.StatusTooManyRequests:
		return e.Code != "insufficient_quota"
	case http.StatusRequestTimeout:
		return true
	default:
		return e.Status >= 500
	}
}
