package lineage

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
)

// CollectOptions configure a collection. DryRun only reports what would be deleted. KeepReflog is how long reflog
// entries keep old history alive, and KeepUnused how long unused content is kept; negative values mean not at all.
// Now is the time at which ages are measured. Progress is called with the work done.
type CollectOptions = backend.CollectOptions

// Default retention times of a collection.
const (
	DefaultKeepReflog = backend.DefaultKeepReflog
	DefaultKeepUnused = backend.DefaultKeepUnused
)

// Collect deletes everything that can no longer be reached and frees its disk space: the remains of deleted threads
// and contexts, spans that no context, checkpoint, summary or recent reflog entry leads to, content used only by such
// spans, and the bytes of erased content. Content shared by several histories stays as long as one of them does. The
// store can be used meanwhile. A cancelled collection is completed by the next one. If the engine has no collection,
// the error is errors.ErrUnsupported.
func (s *Store) Collect(ctx context.Context, o CollectOptions) (backend.CollectReport, error) {
	engine, err := ability[backend.Collector](ctx, s)
	if err != nil {
		return backend.CollectReport{}, fmt.Errorf("collect: %w", err)
	}
	if o.Now.IsZero() {
		o.Now = s.writer.Now()
	}
	return engine.Collect(ctx, o)
}
