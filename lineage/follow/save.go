package follow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/amount"
)

// save saves what was recorded of files, and then the changed states.
func (r *run) save(ctx context.Context) error {
	for _, f := range slices.Clone(r.active) {
		if err := r.setAside(ctx, f, r.flush(ctx, f)); err != nil {
			return err
		}
	}
	for states := range slices.Chunk(r.unsaved, saveMost) {
		var put []*State
		for _, f := range states {
			put = append(put, f.state)
		}
		if err := r.kept.put(ctx, put); err != nil {
			return fmt.Errorf("save the state of %s: %w", amount.Plural(len(put), "file"), err)
		}
	}
	if len(r.changedFolders) > 0 {
		if err := r.kept.putFolderErrors(ctx, r.changedFolders); err != nil {
			return fmt.Errorf("save the errors of folders: %w", err)
		}
		clear(r.changedFolders)
	}
	if len(r.unsaved) > 0 { // readers leave it to this
		if err := r.store.Sync(ctx); err != nil {
			return err
		}
	}
	for _, f := range r.unsaved {
		f.unsaved, f.state.moved = false, ""
	}
	r.unsaved, r.saveAt = nil, time.Time{}
	return nil
}
