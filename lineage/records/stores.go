package records

import (
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Collected is what a collection removed, or would remove.
type Collected struct {
	DryRun bool `json:"dry_run"`
	backend.CollectReport
}

func (*Collected) RecordType() string { return "collected" }

// Info is what a store is and holds.
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
	// Owner is the process that has the store open, if it is another one, and Guests are the others
	// that use the store through that process.
	Owner  *lineage.Process  `json:"owner,omitempty"`
	Guests []lineage.Process `json:"guests,omitempty"`
}

func (*Info) RecordType() string { return "info" }

// Init is a store that was created.
type Init struct {
	Store string `json:"store"`
}

func (*Init) RecordType() string { return "init" }

// Packed is what packing did.
type Packed struct{ backend.PackReport }

func (*Packed) RecordType() string { return "packed" }

// Repaired is what repair did.
type Repaired struct {
	Store   string `json:"store"`
	Commits uint64 `json:"commits"`
}

func (*Repaired) RecordType() string { return "repaired" }

// Salvaged is what was found in a damaged store.
type Salvaged struct {
	Store string `json:"store"`
	embedded.SalvageReport
}

func (*Salvaged) RecordType() string { return "salvaged" }

// Loss is a part of a store's files that cannot be read.
type Loss struct{ embedded.Loss }

func (*Loss) RecordType() string { return "loss" }

// Stats is how much a store holds.
type Stats struct {
	backend.Stats
	// CopiedMessages and CopiedBytes are what it would be if every context held a copy
	// of its history. CopiedExact is false where the bytes are an estimate.
	CopiedMessages uint64 `json:"copied_messages"`
	CopiedBytes    uint64 `json:"copied_bytes"`
	CopiedExact    bool   `json:"copied_exact"`
}

func (*Stats) RecordType() string { return "stats" }

// Finding is one thing that is wrong with a store.
type Finding struct{ backend.Finding }

func (*Finding) RecordType() string { return "finding" }

// Verified ends what verify prints.
type Verified struct {
	Deep bool `json:"deep"`
	// Findings is how many things are wrong.
	Findings int `json:"findings"`
	// CheckedBytes is how much was read.
	CheckedBytes int64  `json:"checked_bytes"`
	Commits      uint64 `json:"commits"`
	OK           bool   `json:"ok"`
}

func (*Verified) RecordType() string { return "verified" }
