package archive

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// Position is a position in an archive.
type Position struct {
	// File is the name of the input, with its path in the archive.
	File string
	// Line is the line number, from 1, or 0 if the input is not read by lines.
	Line int64
	// Item is the number of the item in the input, from 1; 0 for none.
	Item int64
	// Offset is the start of the item in the decompressed input.
	Offset int64
	// Inside, when not empty, is an id or name inside the item.
	Inside string
}

// String returns the position for people: "chats.json: item 3 (byte 120)".
func (p Position) String() string {
	file, within := cmp.Or(p.File, "input"), p.Within()
	switch {
	case p.Line > 0 || p.Item > 0:
		return file + ": " + within
	case within != "":
		return file + ", " + within
	}
	return file
}

// Within returns the position without the file, empty for all of it: "item 3 (byte 120)".
func (p Position) Within() string {
	number := ""
	switch {
	case p.Line > 0:
		number = "line " + strconv.FormatInt(p.Line, 10)
	case p.Item > 0:
		number = "item " + strconv.FormatInt(p.Item, 10)
	default:
		return p.Inside
	}
	number += " (byte " + strconv.FormatInt(p.Offset, 10) + ")"
	if p.Inside != "" {
		return number + ", " + p.Inside
	}
	return number
}

// In returns the position of something inside the item.
func (p Position) In(inside string) Position {
	p.Inside = inside
	return p
}

// Element returns the position of the i-th element of a kind in an item.
func (p Position) Element(kind string, i int) Position {
	p.Inside = kind + " " + strconv.Itoa(i)
	return p
}

// MaxReported limits the damages that are listed per kind. Further ones are only counted.
const MaxReported = 1000

// Damage describes an item that cannot be used, or only after a change.
type Damage struct {
	At  Position
	Err error
}

func (d *Damage) Error() string { return d.At.String() + ": " + d.Err.Error() }

// Unwrap returns the reason.
func (d *Damage) Unwrap() error { return d.Err }

// ElsewhereError is why a conversation lacks its beginning: that is in another one, which is not there, or not all of it yet. Read
// again when it is, the conversation has all.
type ElsewhereError struct {
	// SourceID is that of the other conversation.
	SourceID string
	Err      error
}

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("malformed: its beginning is only in session %s: %v; it begins here", e.SourceID, e.Err)
}

// Unwrap returns ErrMalformed and the reason.
func (e *ElsewhereError) Unwrap() []error { return []error{ErrMalformed, e.Err} }

var (
	// ErrMalformed is returned for input that does not conform to its format.
	ErrMalformed = errors.New("malformed")
	// ErrTooLarge is returned for input that exceeds a limit.
	ErrTooLarge = errors.New("too large")
	// ErrTooDeep is returned for values or archives nested deeper than a limit.
	ErrTooDeep = rawjson.ErrTooDeep
	// ErrUnknownFormat is returned for input that no format recognises.
	ErrUnknownFormat = errors.New("unknown format")
	// ErrRefused is returned for input that is not read for security reasons.
	ErrRefused = errors.New("refused")
	// ErrNoMessages is returned for a file of a known format without messages.
	ErrNoMessages = errors.New("no messages")
	// ErrNothingFound is returned for an archive without conversations.
	ErrNothingFound = errors.New("no conversations found")
)

// Damaged returns a damage at a position.
func Damaged(at Position, err error) *Damage { return &Damage{At: at, Err: err} }

// Malformed returns an error that matches ErrMalformed.
func Malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}
