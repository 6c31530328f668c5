package derivedtest

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Late is an engine that calls functions once: Snapshot after it has made a snapshot, Asked before it yields commits.
type Late struct {
	backend.Engine
	Snapshotted, Asked func()
}

// NewLate returns another engine of a store, and a store on it.
func NewLate(store *lineage.Store) (*Late, *lineage.Store) {
	l := &Late{Engine: write.Of(store).Engine()}
	return l, lineage.New(l)
}

// StoreID implements backend.Identified.
func (l *Late) StoreID() [16]byte { return l.Engine.(backend.Identified).StoreID() }

// Snapshot implements backend.View.
func (l *Late) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	s, err := l.Engine.Snapshot(ctx)
	call(&l.Snapshotted)
	return s, err
}

// Feed implements backend.View.
func (l *Late) Feed(ctx context.Context, after backend.Cursor) iter.Seq2[*structure.Commit, error] {
	call(&l.Asked)
	return l.Engine.Feed(ctx, after)
}

func call(do *func()) {
	if f := *do; f != nil {
		*do = nil
		f()
	}
}
