package records

// CommonPrefix is the common start of two histories.
type CommonPrefix struct {
	// Length is the number of common messages. LengthA and LengthB are the numbers of messages of the histories.
	Length  uint64 `json:"length"`
	LengthA uint64 `json:"length_a"`
	LengthB uint64 `json:"length_b"`
	// Last is the id that the last common message has in the first history.
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
	// Columns are the columns that differ.
	Columns []string `json:"columns,omitempty"`
}

func (*Difference) RecordType() string { return "difference" }

// Compared is the last record of compare.
type Compared struct {
	Database string `json:"database"`
	// Differences is the number of rows that differ from the store.
	Differences int `json:"differences"`
	// Complete is false if --limit ended the comparison.
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

// DiffSummary is the last record of diff.
type DiffSummary struct {
	// Common is the number of messages that both share at the start.
	Common uint64 `json:"common"`
	OnlyA  uint64 `json:"only_a"`
	OnlyB  uint64 `json:"only_b"`
	// Same is the number of messages after the common ones that are equal in both.
	Same uint64 `json:"same"`
}

func (*DiffSummary) RecordType() string { return "diff_summary" }

// DocumentDiff compares two revisions of a document.
type DocumentDiff struct {
	Document string `json:"document"`
	From     uint64 `json:"from"`
	To       uint64 `json:"to"`
	// Lines are the lines of both revisions. A line of both has a space before it, a line of the first only a minus,
	// a line of the second only a plus.
	Lines []string `json:"lines"`
}

func (*DocumentDiff) RecordType() string { return "document_diff" }
