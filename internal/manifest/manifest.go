// Package manifest is the binary form of how the lines of a session file follow from messages. A line is a template with
// holes: for the body and metadata of its message, its id and time, the id of the session, and the ids of earlier lines.
// What stays in a template, and values that only one line has, are ids, times, numbers and names of kinds, so a manifest
// says nothing that somebody said. A copy of a session with another id has equal manifests.
package manifest

import (
	"errors"
	"time"
)

// Limits. A line beyond them is kept whole.
const (
	maxLines    = 1 << 10 // of a block
	maxTemplate = 4 << 10
	maxValue    = 4 << 10
	maxOwn      = 64 << 10 // values of a line
	maxSpans    = 1 << 10  // of a line
	fullBlock   = 1 << 20
	maxBlock    = 4 << 20
)

// ErrMalformed is returned for bytes that are not a block.
var ErrMalformed = errors.New("malformed manifest")

// Message is the stored message of a line.
type Message struct {
	ID      string
	Created time.Time
	// Body is the message as it was given; Metadata its other members, or nil.
	Body, Metadata []byte
}

// Holes of templates. JSON does not contain these bytes.
const (
	holeBody    = 0x01 // the body
	holeText    = 0x02 // the body as a JSON string
	holeMember  = 0x03 // the member of the body with the key before the hole
	holeMeta    = 0x04 // the member of the metadata with the key before the hole
	holeID      = 0x05 // the id of the message
	holeSession = 0x06 // the id of the session
	holeTime    = 0x07 // the time of the message
	holeBack    = 0x0b // the id of an earlier line of the block
	holeOwn     = 0x0c // a value of this line alone
	holeWhole   = 0x0e // a line that is kept whole
	holeUUID    = 0x0f // a UUID of this line alone, in lower case
	holeOwnTime = 0x10 // a time of this line alone
	holeInner   = 0x11 // the first member with the key before the hole in the values of the body
)

func isHole(c byte) bool { return c < ' ' && c != '\t' && c != '\n' && c != '\r' }

// timeForm is the form of times that templates have holes for.
const timeForm = `"2006-01-02T15:04:05.000Z"`
