package sqladapter

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
)

// Disconnected reports whether an error means that a network connection was lost or could not be made. It is for
// dialects.
func Disconnected(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Explain wraps a driver's error with its meaning, such as ErrBusy or ErrDenied. An error that has a meaning already
// is returned unchanged.
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
