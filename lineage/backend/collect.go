package backend

import (
	"context"
	"time"
)

// Collector is implemented by engines that can delete unreachable data, including its bytes on
// disk.
type Collector interface {
	// Collect deletes everything unreachable: spans that no context, checkpoint, summary or
	// recent reflog entry leads to, records of deleted threads and contexts, replaced values
	// that no context inherits, content that no remaining span or value uses, and the bytes of
	// erased content. Commits keep their numbers; the feed yields them without the deleted
	// records, but with deletions. It may be called at any time; open iterators finish on the
	// old files. An error leaves the store intact.
	Collect(ctx context.Context, o CollectOptions) (CollectReport, error)
}

// CollectOptions configure a collection. A zero field means its default.
type CollectOptions struct {
	// DryRun reports what would be deleted and changes nothing.
	DryRun bool
	// KeepReflog is how long reflog entries and replaced values are kept, with the spans that
	// they refer to. Default 30 days; negative keeps none.
	KeepReflog time.Duration
	// KeepUnused is how long unused content is kept. Default 24 hours; negative keeps none.
	KeepUnused time.Duration
	// Now is the time at which ages are measured. Default time.Now().
	Now time.Time
	// Progress, if not nil, is called with the work done, in bytes of the journal.
	Progress func(done, total int64)
}

// Defaults of a collection.
const (
	DefaultKeepReflog = 30 * 24 * time.Hour
	DefaultKeepUnused = 24 * time.Hour
)

// CollectReport is the result of a collection or a dry run.
type CollectReport struct {
	// Commit is the last commit that was examined.
	Commit uint64 `json:"commit"`
	// Records is the number of all deleted records. Spans, Blocks and Chunks count the deleted records of these
	// kinds. Erased counts erased blocks of which only the description is left.
	Records uint64 `json:"records"`
	Spans   uint64 `json:"spans"`
	Blocks  uint64 `json:"blocks"`
	Chunks  uint64 `json:"chunks"`
	Erased  uint64 `json:"erased"`
	// Bytes is the size of the deleted bodies and chunks.
	Bytes uint64 `json:"bytes"`
	// Files is the number of journal files that were rewritten, or would be. It is 0 for an engine
	// without files.
	Files int `json:"files"`
	// Before and After are the sizes of journal and index. A dry run does not set After. Files
	// with open readers are not counted and are removed later.
	Before uint64 `json:"bytes_before"`
	After  uint64 `json:"bytes_after,omitempty"`
	// Removed are files that were removed because they may have contained deleted data: an
	// index from before a repair, a search index, bytes that recovery set aside.
	Removed []string `json:"removed,omitempty"`
	// Elsewhere names other places that may still have the deleted data. It is empty if
	// nothing was deleted.
	Elsewhere []string `json:"elsewhere,omitempty"`
}
