// Package records has the JSON records that the commands of lineage print with --json, and that its server answers with:
// one vocabulary for all programs. docs/json.md describes each of them.
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

// Encode returns a record as a line of JSON that begins with its type. It ends with a newline and has no other
// characters that control a terminal or reorder text.
func Encode(r Record) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.RecordType(), err)
	}
	// Every record has a field that is always there.
	return append([]byte(`{"type":"`+r.RecordType()+`",`), plain.JSON(bytes.TrimPrefix(b.Bytes(), []byte("{")))...), nil
}
