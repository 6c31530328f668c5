package search

import (
	"context"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
)

// fileIndex is an index in a file.
type fileIndex struct {
	file    *derivedfile.File
	store   *lineage.Store
	options Options

	embedding chan struct{} // has an element while a goroutine embeds texts
}

// Close implements index.
func (x *fileIndex) Close() error { return x.file.Close() }

// Update implements index.
func (x *fileIndex) Update(ctx context.Context) error {
	return x.file.Update(ctx, derivedfile.Updating{Apply: apply, Limit: searched.WindowLimit, Progress: x.options.Progress})
}
