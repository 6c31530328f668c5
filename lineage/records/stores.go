package records

import (
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Collected is the result of a collection or a dry run.
type Collected struct {
	DryRun bool `json:"dry_run"`
	backend.CollectReport
}

func (*Collected) RecordType() string { return "collected" }

// Info is the state of a store.
type Info struct {
	Store string `json:"store"`
	// LastCommit is the number of the last commit; 0 in an empty store.
	LastCommit  uint64 `json:"last_commit"`
	Threads     uint64 `json:"threads"`
	Contexts    uint64 `json:"contexts"`
	Branches    uint64 `json:"branches"`
	Checkpoints uint64 `json:"checkpoints"`
	Messages    uint64 `json:"messages"`
	Blocks      uint64 `json:"blocks"`
	StoredBytes uint64 `json:"stored_bytes"`
	// Thread is the id of the thread that commands work on.
	Thread string `json:"thread,omitempty"`
	// Branch is its active branch.
	Branch string `json:"branch,omitempty"`
	// Owner is the process that has the store open, if it is another process. Guests are the other processes that use
	// the store through it.
	Owner  *lineage.Process  `json:"owner,omitempty"`
	Guests []lineage.Process `json:"guests,omitempty"`
}

func (*Info) RecordType() string { return "info" }

// Init is a store that was created.
type Init struct {
	Store string `json:"store"`
	// Existed is set if the store was there, and only its tables were distributed.
	Existed bool `json:"existed,omitempty"`
}

func (*Init) RecordType() string { return "init" }

// Packed is the result of packing.
type Packed struct{ backend.PackReport }

func (*Packed) RecordType() string { return "packed" }

// Repaired is the result of repair.
type Repaired struct {
	Store   string `json:"store"`
	Commits uint64 `json:"commits"`
}

func (*Repaired) RecordType() string { return "repaired" }

// Salvaged is the result of a salvage.
type Salvaged struct {
	Store string `json:"store"`
	embedded.SalvageReport
}

func (*Salvaged) RecordType() string { return "salvaged" }

// Loss is a part of a store's files that cannot be read.
type Loss struct{ embedded.LostPart }

func (*Loss) RecordType() string { return "loss" }

// Stats are the statistics of a store.
type Stats struct {
	backend.Stats
	// CopiedMessages and CopiedBytes are the numbers if every context held a copy of its history. CopiedExact is
	// false if the bytes are an estimate.
	CopiedMessages uint64 `json:"copied_messages"`
	CopiedBytes    uint64 `json:"copied_bytes"`
	CopiedExact    bool   `json:"copied_exact"`
}

func (*Stats) RecordType() string { return "stats" }

// Finding is a problem of a store.
type Finding struct{ backend.Finding }

func (*Finding) RecordType() string { return "finding" }

// Verified is the last record of verify.
type Verified struct {
	Deep bool `json:"deep"`
	// Findings is the number of problems.
	Findings int `json:"findings"`
	// CheckedBytes is the number of bytes read.
	CheckedBytes int64  `json:"checked_bytes"`
	Commits      uint64 `json:"commits"`
	OK           bool   `json:"ok"`
}

func (*Verified) RecordType() string { return "verified" }
