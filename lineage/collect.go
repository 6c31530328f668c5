package lineage

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
)

// CollectOptions configure a collection.
type CollectOptions = backend.CollectOptions

// For how long a collection keeps things unless it is told otherwise.
const (
	DefaultKeepReflog = backend.DefaultKeepReflog
	DefaultKeepUnused = backend.DefaultKeepUnused
)

// Collect removes what nothing uses any more, bytes on disk included: what is left
// of deleted threads and contexts, spans that no context, checkpoint, summary or
// recent move leads to, content that only such spans use, and the bytes of erased
// content. What histories share stays for as long as one of them does. It can run
// while the store is read and written, and be cancelled; then it does what is left
// the next time. With DryRun it only tells what would go. An engine that cannot
// collect is errors.ErrUnsupported.
func (s *Store) Collect(ctx context.Context, o CollectOptions) (backend.CollectReport, error) {
	engine, ok := s.engine.(backend.Collector)
	if !ok {
		return backend.CollectReport{}, fmt.Errorf("collect: %w", errors.ErrUnsupported)
	}
	if o.Now.IsZero() {
		o.Now = s.writer.Now()
	}
	return engine.Collect(ctx, o)
}
