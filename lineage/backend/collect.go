package backend

import (
	"context"
	"time"
)

// Collector is implemented by engines that can take out what nothing uses any
// more, bytes on disk included.
type Collector interface {
	// Collect removes what cannot be reached: spans that lie behind no context,
	// checkpoint, summary or recent reflog entry, what was recorded of deleted
	// threads and contexts, values that were replaced and that no context inherits,
	// content that no such span or value uses, and the bytes of erased content. Commits keep their numbers; the feed yields them without what is gone,
	// with the deletions that say so. It may be called at any time; what readers
	// began to read they read to the end. An error leaves the store whole.
	Collect(ctx context.Context, o CollectOptions) (CollectReport, error)
}

// CollectOptions configure a collection. The zero value of each field is a default.
type CollectOptions struct {
	// DryRun finds what would go and changes nothing.
	DryRun bool
	// KeepReflog is for how long a reflog entry keeps the spans that it tells of.
	// Older ones go with their spans. Values that were replaced stay as long. Default 30
	// days; negative keeps none.
	KeepReflog time.Duration
	// KeepUnused is for how long content stays that was stored and that nothing has
	// used yet. Default 24 hours; negative keeps none.
	KeepUnused time.Duration
	// Now is what these are measured from. Default time.Now().
	Now time.Time
	// Progress, when not nil, is called now and then with how much of the work is
	// done, in bytes of the journal.
	Progress func(done, total int64)
}

// Defaults of a collection.
const (
	DefaultKeepReflog = 30 * 24 * time.Hour
	DefaultKeepUnused = 24 * time.Hour
)

// CollectReport tells what a collection took out, or would.
type CollectReport struct {
	// Commit is the number of the last commit that was looked at.
	Commit uint64 `json:"commit"`
	// Records are all records that went; of them these spans, blocks and chunks, and
	// so many blocks that left only their description because they were erased.
	Records uint64 `json:"records"`
	Spans   uint64 `json:"spans"`
	Blocks  uint64 `json:"blocks"`
	Chunks  uint64 `json:"chunks"`
	Erased  uint64 `json:"erased"`
	// Bytes is the size of the bodies and chunks that went.
	Bytes uint64 `json:"bytes"`
	// Files is how many files of the journal were written anew, or would be.
	Files int `json:"files"`
	// Before and After are the sizes of journal and index. A dry run does not know
	// After. Files that somebody still reads are not counted and go later.
	Before uint64 `json:"before"`
	After  uint64 `json:"after,omitempty"`
	// Removed are files of the store that were removed whole because they may have held
	// some of it: an index from before a repair, a search index, bytes that recovery set
	// aside.
	Removed []string `json:"removed,omitempty"`
	// Elsewhere names what may still hold it, for a collection does not reach there. It is
	// empty when nothing went.
	Elsewhere []string `json:"elsewhere,omitempty"`
}
