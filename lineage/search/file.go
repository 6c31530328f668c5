package search

import (
	"context"
	"time"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/internal/semaphore"
	"github.com/lineage-store/lineage/lineage"
)

// fileIndex is an index in a file.
type fileIndex struct {
	file    *derivedfile.File
	store   *lineage.Store
	options Options

	embedding semaphore.Semaphore // taken while a goroutine embeds texts
}

// Close implements index.
func (x *fileIndex) Close() error { return x.file.Close() }

// update implements index.
func (x *fileIndex) update(ctx context.Context, until time.Time) error {
	return x.file.Update(ctx, derivedfile.Updating{Apply: apply, Limit: searched.WindowLimit, Progress: x.options.Progress, Until: until})
}
