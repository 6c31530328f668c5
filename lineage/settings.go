package lineage

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// checkSettings refuses overrides and metadata that are not JSON. Empty ones are allowed.
func checkSettings(o *Overrides, metadata []byte) error {
	switch {
	case !isSetting(o.JSON):
		return fmt.Errorf("overrides are not JSON: %w", ErrInvalid)
	case !isSetting(metadata):
		return fmt.Errorf("metadata is not JSON: %w", ErrInvalid)
	}
	return nil
}

// checkChanged refuses changed overrides or metadata that are not JSON. Unchanged ones may come
// from an import, which does not check them.
func checkChanged(subject, id, what string, was, now []byte) error {
	if isSetting(now) || bytes.Equal(was, now) {
		return nil
	}
	return subjectError(subject, id, ErrInvalid, what+": not JSON")
}

func isSetting(text []byte) bool { return len(text) == 0 || json.Valid(text) }
