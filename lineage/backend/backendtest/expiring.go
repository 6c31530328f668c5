package backendtest

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Expiring wraps an engine whose snapshots expire when a path is read in them, as if the process with
// the store had closed it, or another had collected garbage. The first Left of them do.
type Expiring struct {
	backend.Engine
	Left atomic.Int64
}

// StoreID implements backend.Identified.
func (e *Expiring) StoreID() [16]byte {
	if got, ok := e.Engine.(backend.Identified); ok {
		return got.StoreID()
	}
	return [16]byte{}
}

// Snapshot implements backend.Engine.
func (e *Expiring) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	s, err := e.Engine.Snapshot(ctx)
	if err == nil && e.Left.Add(-1) >= 0 {
		s = expired{s}
	}
	return s, err
}

type expired struct{ backend.Snapshot }

func (expired) Path(context.Context, structure.SpanRef, structure.Window, backend.PathOptions) iter.Seq2[*backend.Step, error] {
	return func(yield func(*backend.Step, error) bool) { yield(nil, backend.ErrExpired) }
}
