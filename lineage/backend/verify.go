package backend

import "fmt"

// VerifyOptions say how thoroughly to check.
type VerifyOptions struct {
	// Deep recomputes every content id, key and digest and compares the whole
	// index with what the journal says. Otherwise checksums and numbering are
	// checked.
	Deep bool
	// Progress, when not nil, is called now and then with how much of the stored
	// bytes was checked.
	Progress func(done, total int64)
}

// Finding is one thing that is wrong with a store.
type Finding struct {
	// Subject is what is damaged: "journal", "index", "block", "chunk".
	Subject string `json:"subject"`
	ID      string `json:"id,omitempty"`
	File    string `json:"file,omitempty"`
	Offset  int64  `json:"offset,omitempty"`
	Problem string `json:"problem"`
	// Repair names what mends it; empty when nothing can.
	Repair string `json:"repair,omitempty"`
}

// RebuildIndex is the Repair of damage that a rebuild from the journal removes.
const RebuildIndex = "rebuild the index"

// String describes the finding in a line.
func (f Finding) String() string {
	s := f.Subject
	if f.ID != "" {
		s += " " + f.ID
	}
	if f.File != "" {
		s += fmt.Sprintf(" (%s at byte %d)", f.File, f.Offset)
	}
	s += ": " + f.Problem
	if f.Repair != "" {
		s += "; to repair: " + f.Repair
	}
	return s
}
