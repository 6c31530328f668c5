package project

import (
	"fmt"
)

// DifferenceKind is the kind of a difference.
type DifferenceKind string

// The kinds of difference.
const (
	Missing   DifferenceKind = "missing"
	Extra     DifferenceKind = "extra"
	Different DifferenceKind = "different"
)

// Difference is a row that does not match the store.
type Difference struct {
	Kind  DifferenceKind `json:"kind"`
	Table string         `json:"table"`
	ID    string         `json:"id"`
	// Columns are the differing columns.
	Columns []string `json:"columns,omitempty"`
}

// String describes the difference in one line.
func (d Difference) String() string {
	s := fmt.Sprintf("%s: row %q is %s", d.Table, d.ID, d.Kind)
	if len(d.Columns) > 0 {
		s += fmt.Sprintf(" in %q", d.Columns)
	}
	return s
}
