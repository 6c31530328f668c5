package lineage

import (
	"fmt"

	"github.com/lineage-store/lineage/structure"
)

// ParseThreadID parses the text form of a thread's id. The error for other text matches
// ErrInvalid, as for the functions below.
func ParseThreadID(text string) (ThreadID, error) {
	return parsed("thread", text, structure.ParseID[ThreadID])
}

// ParseContextID parses the text form of a context's id.
func ParseContextID(text string) (ContextID, error) {
	return parsed("context", text, structure.ParseID[ContextID])
}

// ParseSpanRef parses the text form of a span's address.
func ParseSpanRef(text string) (SpanRef, error) {
	return parsed("span", text, structure.ParseSpanRef)
}

func parsed[T any](subject, text string, parse func(string) (T, error)) (T, error) {
	v, err := parse(text)
	if err != nil {
		return v, fmt.Errorf("%s: %w: %w", subject, err, ErrInvalid)
	}
	return v, nil
}
