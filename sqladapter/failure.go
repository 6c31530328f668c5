package sqladapter

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
)

// Failure classifies a driver's error.
type Failure int

// The kinds of failure.
const (
	// OtherFailure is any other error, or none.
	OtherFailure Failure = iota
	// Busy means that another transaction was in the way, or that the database is overloaded. The
	// transaction is rolled back; a retry may succeed.
	Busy
	// Lost means that the connection is lost or could not be made. The transaction is rolled back,
	// unless it was being committed: then the outcome is unknown.
	Lost
	// Denied means that the user lacks a right.
	Denied
	// Duplicate means that a key is taken.
	Duplicate
	// Dangling means that a referenced row does not exist, or that a deleted row is still
	// referenced.
	Dangling
	// Unstorable means that the database cannot store a value.
	Unstorable
	// Pooled means that a pooler gave the connection with a prepared statement to another client.
	Pooled
	// NoSchema means that the schema for the tables does not exist.
	NoSchema
)

// Disconnected reports whether an error means that a network connection is lost or could not be
// made. It is for dialects.
func Disconnected(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Explain wraps a driver's error with its meaning, such as ErrBusy or ErrDenied. An error that has one
// is returned as it is.
func Explain(d Dialect, err error) error {
	for _, known := range []error{ErrBusy, ErrDenied, ErrNoSchema} {
		if errors.Is(err, known) {
			return err
		}
	}
	switch d.Classify(err) {
	case Busy, Lost:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case Denied:
		return fmt.Errorf("%w: %w", ErrDenied, err)
	case NoSchema:
		return fmt.Errorf("%w: %w", ErrNoSchema, err)
	case Pooled:
		return fmt.Errorf("%w (behind a pooler in transaction mode, put default_query_exec_mode=exec into the connection string)", err)
	}
	return err
}
