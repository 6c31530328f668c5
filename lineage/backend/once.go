package backend

import "fmt"

// Once identifies a request of a session, so that it can be sent again if no answer came. A
// session belongs to one client; it has a random id, and its requests are numbered from 1.
type Once struct {
	Session [16]byte
	// Since is the head of the store when the session was created. It must be the same in all requests of the
	// session. An engine that does not know the session can tell from it whether it may have forgotten the session.
	Since    Cursor
	Sequence uint64
}

// OnceWindow is how far a request can be behind the highest sequence of its session. One that
// is further behind is ErrUncertain.
const OnceWindow = 64

// Valid returns ErrInvalid if the session or sequence is missing.
func (o Once) Valid() error {
	if o.Session == [16]byte{} || o.Sequence == 0 {
		return fmt.Errorf("request %d of session %x: a session has an id, and numbers its requests from 1: %w", o.Sequence, o.Session, ErrInvalid)
	}
	return nil
}
