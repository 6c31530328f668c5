// Package records has the JSON records of this project: the output of commands with --json and the answers of the
// server. All programs use the same records. docs/json.md describes each of them.
package records

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/lineage-store/lineage/internal/plain"
)

// Record is a record of one of the types of this package.
type Record interface {
	// RecordType returns the value of the record's field "type".
	RecordType() string
}

// Encode returns a record as a line of JSON that begins with its type. Except for the newline at its end, it has no
// characters that control a terminal or reorder text.
func Encode(r Record) ([]byte, error) {
	kind := `{"type":"` + r.RecordType() + `"`
	b := bytes.NewBuffer(make([]byte, 0, 512))
	b.WriteString(kind)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.RecordType(), err)
	}
	// Every record is an object with a field that is never omitted, so a comma can follow instead of its brace.
	b.Bytes()[len(kind)] = ','
	return plain.JSON(b.Bytes()), nil
}
