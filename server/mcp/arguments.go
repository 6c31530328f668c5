package mcp

import (
	"fmt"
	"time"

	"github.com/lineage-store/lineage/lineage"
)

// maxText limits a text argument of a client, in bytes.
const maxText = 4 << 10

// checked returns an error if an argument is too long.
func checked(args ...string) error {
	for _, arg := range args {
		if len(arg) > maxText {
			return fmt.Errorf("an argument of %d bytes: %w: at most %d", len(arg), lineage.ErrTooLarge, maxText)
		}
	}
	return nil
}

// moment parses a time: a day, or a time in RFC 3339. An empty text is the zero time.
func moment(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %.40q: %w: must be like 2026-01-31, or as in RFC 3339", name, text, lineage.ErrInvalid)
}
