package summarize

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

var (
	// ErrNoText is returned when the passages have no text: an empty summary would replace messages
	// with content.
	ErrNoText = errors.New("no text to summarize")
	// ErrNotConfigured is returned when a required option is missing or invalid.
	ErrNotConfigured = errors.New("not configured")
	// ErrBadResponse is returned for an invalid response.
	ErrBadResponse = errors.New("unusable response")
)

// APIError is returned when the server refuses a request.
type APIError struct {
	Status int
	// Code is the server's error code, such as context_length_exceeded. Not every server sends one.
	Code    string
	Message string
	// RetryAfter is the wait that the server requests, 0 if none.
	RetryAfter time.Duration
}

func (e *APIError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("server answered %d %s", e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("server answered %d: %s", e.Status, e.Message)
}

// temporary reports whether a retry may succeed. An exhausted quota has the same status as a rate
// limit, but waiting does not help.
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
