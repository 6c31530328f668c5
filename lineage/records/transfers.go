package records

import (
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/bundle"
)

// Copied is the result of backup or restore.
type Copied struct {
	// Store is the directory of the copy.
	Store string `json:"store"`
	backend.BackupReport
}

func (*Copied) RecordType() string { return "copied" }

// Bundled is the result of writing a bundle.
type Bundled struct {
	File string `json:"file"`
	bundle.WriteReport
}

func (*Bundled) RecordType() string { return "bundled" }

// Unbundled is the result of importing a bundle.
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

// Exported is the result of an export to a file.
type Exported struct {
	File   string `json:"file"`
	Format string `json:"format"`
	Bytes  int64  `json:"bytes"`
	// Conversations is the number of conversations in a folder of pages.
	Conversations int `json:"conversations,omitempty"`
	// Branches and Pruned are the numbers of branch files that were written and deleted.
	Branches int `json:"branches,omitempty"`
	Pruned   int `json:"pruned,omitempty"`
}

func (*Exported) RecordType() string { return "export" }

// Imported is the last record of import.
type Imported struct {
	Formats []string `json:"formats"`
	// Unchanged is the number of files that were not read because they have not changed since an earlier import.
	Unchanged int64 `json:"unchanged"`
	// Conversations and Messages are the numbers in the archive.
	Conversations    int64 `json:"conversations"`
	Messages         int64 `json:"messages"`
	NewConversations int64 `json:"new_conversations"`
	// NewMessages is the number of messages added. SharedMessages is the number of messages that forked conversations
	// share with their original.
	NewMessages    int64 `json:"new_messages"`
	SharedMessages int64 `json:"shared_messages"`
	// NewBytes is the size of the content that the store did not have.
	NewBytes int64 `json:"new_bytes"`
	// Kept is the number of messages that differ from those in the store only in the serialization of their JSON. The
	// store keeps its version.
	Kept int64 `json:"kept"`
	// Converted is the number of messages that are stored without members that contain or name later messages. Opaque
	// is the number of messages that are stored whole, because they cannot be divided.
	Converted int64 `json:"converted"`
	Opaque    int64 `json:"opaque"`
	// Skipped are items that could not be used. SkippedCount is their number.
	Skipped      []SkippedItem `json:"skipped"`
	SkippedCount int64         `json:"skipped_count"`
	// Repaired are irregular items that were used, with the way in which they were read.
	Repaired      []SkippedItem `json:"repaired"`
	RepairedCount int64         `json:"repaired_count"`
	// Ignored are files in no known format.
	Ignored      []string `json:"ignored"`
	IgnoredCount int64    `json:"ignored_count"`
}

func (*Imported) RecordType() string { return "import" }

// SkippedItem is part of other records.
type SkippedItem struct {
	Position string `json:"position"`
	Reason   string `json:"reason"`
}

// Projected is the result of project.
type Projected struct {
	Database string `json:"database"`
	// From and To are the last commits in the database before and after.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// Threads is the number of threads processed.
	Threads int `json:"threads"`
	// Added, Changed and Removed count messages.
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
	// Skipped are the first threads that the database cannot hold. SkippedCount is their number.
	Skipped      []SkippedItem `json:"skipped"`
	SkippedCount int64         `json:"skipped_count"`
}

func (*Projected) RecordType() string { return "projected" }

// Resumed is a session that was created for an agent.
type Resumed struct {
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Dir     string `json:"dir"`
	File    string `json:"file"`
	// Command is the command for a shell. Commands are the same commands without a shell. They are started in Dir,
	// each after the previous one has succeeded.
	Command  string     `json:"command"`
	Commands [][]string `json:"commands"`
	// Messages is the length of the history. Own is the number of its messages that are written as the agent's own
	// lines.
	Messages int   `json:"messages"`
	Own      int   `json:"own"`
	Lines    int64 `json:"lines"`
	Bytes    int64 `json:"bytes"`
	Losses   int   `json:"losses"`
	// Machine is the machine of the thread's session.
	Machine string `json:"machine,omitempty"`
	// Written is false for a dry run.
	Written bool `json:"written"`
}

func (*Resumed) RecordType() string { return "resumed" }
