package backend

import "fmt"

// VerifyOptions configure a verification.
type VerifyOptions struct {
	// Deep recomputes every content id, key and digest, and compares the whole
	// index with the journal. Otherwise only checksums and numbering are
	// checked.
	Deep bool
	// Progress, if not nil, is called with the number of bytes checked.
	Progress func(done, total int64)
}

// Finding is a problem of a store.
type Finding struct {
	// Subject is what is damaged: "journal", "index", "block", "chunk".
	Subject string `json:"subject"`
	ID      string `json:"id,omitempty"`
	File    string `json:"file,omitempty"`
	Offset  int64  `json:"offset,omitempty"`
	Problem string `json:"problem"`
	// Repair names the repair; empty if there is none.
	Repair string `json:"repair,omitempty"`
}

// RebuildIndex is the Repair of damage that rebuilding the index removes.
const RebuildIndex = "rebuild the index"

// String describes the finding in one line.
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
