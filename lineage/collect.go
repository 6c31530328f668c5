package lineage

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
)

// CollectOptions configure a collection.
//
//	DryRun     bool                    // only report what would be deleted
//	KeepReflog time.Duration           // how long reflog entries keep old history alive; default 30 days, negative: not at all
//	KeepUnused time.Duration           // how long unused content is kept; default 24 hours, negative: not at all
//	Now        time.Time               // the time at which ages are measured; default time.Now()
//	Progress   func(done, total int64) // if not nil, called with the work done, in bytes of the journal
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
