package backend

import "fmt"

// Once names a request of a session, so that it can be sent again when no answer came. A
// session belongs to one client; it has a random id, and its requests are numbered from 1.
type Once struct {
	Session [16]byte
	// Since is where the head was when the session was made. It must be the same in all its
	// requests: an engine that does not know the session tells by it whether it ever did.
	Since    Cursor
	Sequence uint64
}

// OnceWindow is how far behind the highest sequence of a session a request can come. One that
// is further behind is ErrUncertain.
const OnceWindow = 64

// Valid returns ErrInvalid for what names no request.
func (o Once) Valid() error {
	if o.Session == [16]byte{} || o.Sequence == 0 {
		return fmt.Errorf("request %d of session %x: a session has an id, and numbers its requests from 1: %w", o.Sequence, o.Session, ErrInvalid)
	}
	return nil
}
