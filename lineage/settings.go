package lineage

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// checkSettings refuses overrides and metadata that a caller gives and that are not
// JSON. Nothing at all is fine.
func checkSettings(o *Overrides, metadata []byte) error {
	switch {
	case !isSetting(o.JSON):
		return fmt.Errorf("overrides that are not JSON: %w", ErrInvalid)
	case !isSetting(metadata):
		return fmt.Errorf("metadata that is not JSON: %w", ErrInvalid)
	}
	return nil
}

// checkChanged refuses overrides or metadata that a subject is given instead of what it
// had. What stays as it was is not the caller's: it may come from an import, where nobody
// checked it.
func checkChanged(subject, id, what string, was, is []byte) error {
	if isSetting(is) || bytes.Equal(was, is) {
		return nil
	}
	return subjectError(subject, id, ErrInvalid, what+": not JSON")
}

func isSetting(text []byte) bool { return len(text) == 0 || json.Valid(text) }
