package records

// CommonPrefix is what two histories share at the start.
type CommonPrefix struct {
	// Length is how many messages that is, and LengthA and LengthB how many there are.
	Length  uint64 `json:"length"`
	LengthA uint64 `json:"length_a"`
	LengthB uint64 `json:"length_b"`
	// Last is the last of them, in A.
	Last *string `json:"last"`
	// Digest identifies the shared messages by their content, in any store.
	Digest string `json:"digest"`
}

func (*CommonPrefix) RecordType() string { return "common_prefix" }

// Difference is a row of a database that differs from the store.
type Difference struct {
	// Kind is missing, extra or different.
	Kind  string `json:"kind"`
	Table string `json:"table"`
	ID    string `json:"id"`
	// Columns are those that differ.
	Columns []string `json:"columns,omitempty"`
}

func (*Difference) RecordType() string { return "difference" }

// Compared ends what compare prints.
type Compared struct {
	Database string `json:"database"`
	// Differences is how many rows differ from the store.
	Differences int `json:"differences"`
	// Complete is false when --limit ended the comparison.
	Complete bool `json:"complete"`
}

func (*Compared) RecordType() string { return "compared" }

// Diff is a message that only one of two histories has.
type Diff struct {
	// Side is a or b.
	Side    string   `json:"side"`
	Message *Message `json:"message"`
}

func (*Diff) RecordType() string { return "diff" }

// DiffSummary ends what diff prints.
type DiffSummary struct {
	// Common is how many messages they share at the start.
	Common uint64 `json:"common"`
	OnlyA  uint64 `json:"only_a"`
	OnlyB  uint64 `json:"only_b"`
	// Same is how many of the messages after those in common say the same in both.
	Same uint64 `json:"same"`
}

func (*DiffSummary) RecordType() string { return "diff_summary" }

// DocumentDiff compares two revisions of a document.
type DocumentDiff struct {
	Document string `json:"document"`
	From     uint64 `json:"from"`
	To       uint64 `json:"to"`
	// Lines are those of both: a space is before a line of both, a minus before one only of the first, a plus
	// before one only of the second.
	Lines []string `json:"lines"`
}

func (*DocumentDiff) RecordType() string { return "document_diff" }
