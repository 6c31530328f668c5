package archive

import (
	"cmp"
	"fmt"
	"strconv"
)

// Limits limit the resources that reading an archive may use. A zero field means its default. Exceeding a limit is
// reported as a *LimitError.
type Limits struct {
	// Item is the maximum size of a conversation or line. In a database it is the maximum size of a checkpoint, or of
	// a request with its response. Default 256 MiB. A message of that size needs a few times as much memory, a
	// conversation of many a temporary file: see Format.Large.
	Item int64
	// Objects is the maximum number of JSON objects, such as messages, in an item. Default
	// 1,000,000.
	Objects int64
	// Conversations is the maximum number of conversations in an import. Default 10,000,000.
	Conversations int64
	// Total is the maximum size of a file after decompression, or of what is read from a database.
	// Default 1 TiB.
	Total int64
	// Ratio is the maximum of the size after decompression divided by the size of the file. It is checked after
	// RatioFrom bytes. Defaults 250 and 64 MiB.
	Ratio, RatioFrom int64
	// Density is the maximum number of lines or values per 64 compressed bytes. It is checked after DensityFrom lines
	// or values. Defaults 16 and 50,000.
	Density, DensityFrom int64
	// Depth is the maximum nesting of archives. Default 3.
	Depth int64
	// Files is the maximum number of files in an archive or folder. Default 1,000,000.
	Files int64
}

// OrDefault returns the limits with defaults for zero fields.
func (l Limits) OrDefault() Limits {
	return Limits{
		Item: cmp.Or(l.Item, 256<<20), Objects: cmp.Or(l.Objects, 1_000_000), Conversations: cmp.Or(l.Conversations, 10_000_000),
		Total: cmp.Or(l.Total, 1<<40), Ratio: cmp.Or(l.Ratio, 250), RatioFrom: cmp.Or(l.RatioFrom, 64<<20),
		Density: cmp.Or(l.Density, 16), DensityFrom: cmp.Or(l.DensityFrom, 50_000), Depth: cmp.Or(l.Depth, 3), Files: cmp.Or(l.Files, 1_000_000),
	}
}

// ByName returns pointers to the limits by the names that errors use, such as "ratio".
func (l *Limits) ByName() map[string]*int64 {
	return map[string]*int64{
		"item": &l.Item, "objects": &l.Objects, "conversations": &l.Conversations, "total": &l.Total, "ratio": &l.Ratio,
		"density": &l.Density, "depth": &l.Depth, "files": &l.Files,
	}
}

// LimitError is returned when a limit is exceeded. It matches one of ErrTooLarge, ErrTooDeep and ErrRefused.
type LimitError struct {
	// Limit is the name of the limit: see Limits.ByName.
	Limit string
	Most  int64
	What  string // the unit
	Err   error
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: more than %s %s (limit %q)", e.Err, strconv.FormatInt(e.Most, 10), e.What, e.Limit)
}

// Unwrap returns the sentinel that it matches.
func (e *LimitError) Unwrap() error { return e.Err }

// TooLarge returns the error for a line or value larger than Limits.Item.
func TooLarge(what string, size, limit int64) error {
	return fmt.Errorf("%s of %d bytes: %w", what, size, &LimitError{Limit: "item", Most: limit, What: "bytes", Err: ErrTooLarge})
}
