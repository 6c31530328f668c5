package resume

import (
	"errors"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
)

var (
	// ErrNoWayIn is returned for an agent for which no session can be created.
	ErrNoWayIn = errors.New("no session can be made for this agent")
	// ErrNothing is returned for a history without messages.
	ErrNothing = errors.New("there is no message to resume from")
	// ErrNoFolder is returned if the folder in which the agent should start does not exist.
	ErrNoFolder = errors.New("no folder to continue in")
)

// notUsable reports whether the lines of a source cannot be used, so that the messages must be translated.
func notUsable(err error) bool {
	for _, reason := range []error{follow.ErrNotExact, lineage.ErrErased, lineage.ErrNotFound, lineage.ErrCorrupt, errElsewhere, errOldForm, errAmbiguous} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// errElsewhere is returned for a session that begins in another file.
var errElsewhere = errors.New("the session begins in another file")

// errOldForm is returned for a session in a form that its agent no longer reads.
var errOldForm = errors.New("the session has an old form")

// errChanged is returned if messages were erased after the session was planned.
var errChanged = errors.New("the history changed meanwhile")

// errAmbiguous is returned for a session with a record that has a key twice, which programs read differently.
var errAmbiguous = errors.New("a record has a key twice")
