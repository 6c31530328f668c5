package records

import (
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/bundle"
)

// Copied is what backup or restore copied.
type Copied struct {
	// Store is the directory of the copy.
	Store string `json:"store"`
	backend.BackupReport
}

func (*Copied) RecordType() string { return "copied" }

// Bundled is what was written into a bundle.
type Bundled struct {
	File string `json:"file"`
	bundle.WriteReport
}

func (*Bundled) RecordType() string { return "bundled" }

// Unbundled is what a bundle added to a store.
type Unbundled struct{ bundle.ImportReport }

func (*Unbundled) RecordType() string { return "unbundled" }

// Inventory is an inventory that was written.
type Inventory struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

func (*Inventory) RecordType() string { return "inventory" }

// StoreCopied is a copy of a store.
type StoreCopied struct {
	// Store is the directory of the copy, or its URL without a password.
	Store string `json:"store"`
	lineage.CopyReport
}

func (*StoreCopied) RecordType() string { return "store_copied" }

// Exported is what export wrote to a file.
type Exported struct {
	File   string `json:"file"`
	Format string `json:"format"`
	Bytes  int64  `json:"bytes"`
	// Conversations is how many there are in a folder of pages.
	Conversations int `json:"conversations,omitempty"`
	// Branches and Pruned are the numbers of branch files that were written and deleted.
	Branches int `json:"branches,omitempty"`
	Pruned   int `json:"pruned,omitempty"`
}

func (*Exported) RecordType() string { return "export" }

// Imported ends what import prints.
type Imported struct {
	Formats []string `json:"formats"`
	// Unchanged is how many files were not read, because they have not changed since an earlier import.
	Unchanged int64 `json:"unchanged"`
	// Conversations and Messages are what the archive has.
	Conversations    int64 `json:"conversations"`
	Messages         int64 `json:"messages"`
	NewConversations int64 `json:"new_conversations"`
	// NewMessages were added. SharedMessages were not, because they are those of the
	// conversation that theirs was forked from.
	NewMessages    int64 `json:"new_messages"`
	SharedMessages int64 `json:"shared_messages"`
	// NewBytes is the size of the content that the store did not have.
	NewBytes int64 `json:"new_bytes"`
	// Kept messages differ from those in the store only in the form of their JSON. The store keeps
	// its own.
	Kept int64 `json:"kept"`
	// Converted messages are stored without members that hold or name the messages after them,
	// Opaque ones whole, because they cannot be taken apart.
	Converted int64 `json:"converted"`
	Opaque    int64 `json:"opaque"`
	// Skipped are items that could not be used, and SkippedCount is how many there are.
	Skipped      []SkippedItem `json:"skipped"`
	SkippedCount int64         `json:"skipped_count"`
	// Repaired are items that are odd, and how they were taken.
	Repaired      []SkippedItem `json:"repaired"`
	RepairedCount int64         `json:"repaired_count"`
	// Ignored are files of no known format.
	Ignored      []string `json:"ignored"`
	IgnoredCount int64    `json:"ignored_count"`
}

func (*Imported) RecordType() string { return "import" }

// SkippedItem is part of other records.
type SkippedItem struct {
	Position string `json:"position"`
	Reason   string `json:"reason"`
}

// Projected is what project did.
type Projected struct {
	Database string `json:"database"`
	// From and To are the commits that the database had and has.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// Threads is how many threads were looked at.
	Threads int `json:"threads"`
	// Added, Changed and Removed count messages.
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
}

func (*Projected) RecordType() string { return "projected" }

// Resumed is a session that was made for an agent.
type Resumed struct {
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Dir     string `json:"dir"`
	File    string `json:"file"`
	// Command is the command for a shell. Commands are the same without a shell, to be started in Dir, each after the one before it
	// succeeded.
	Command  string     `json:"command"`
	Commands [][]string `json:"commands"`
	// Messages is the length of the history, and Own how much of it is written with the agent's own lines.
	Messages int   `json:"messages"`
	Own      int   `json:"own"`
	Lines    int64 `json:"lines"`
	Bytes    int64 `json:"bytes"`
	Losses   int   `json:"losses"`
	// Machine is the one that the thread's session ran on.
	Machine string `json:"machine,omitempty"`
	// Written is false for a dry run.
	Written bool `json:"written"`
}

func (*Resumed) RecordType() string { return "resumed" }
