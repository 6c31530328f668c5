package derived

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// ErrOtherStore is returned for derived data of another store.
var ErrOtherStore = errors.New("derived from another store")

// errOvertaken ends a pass because another process has written in the meantime. The next pass has a newer snapshot.
var errOvertaken = errors.New("another process has updated the derived data")

// Mark is the position of derived data. Empty data has the zero mark.
type Mark struct {
	Store structure.StoreID
	// At is the last applied commit. All commits before it are applied too.
	At backend.Cursor
	// Seen is the newest commit whose state was read for applied changes. While it differs from At, some subjects are
	// newer than others.
	Seen backend.Cursor
	// Version counts transactions.
	Version int64
}

// Settled reports whether all data is of one state of the store.
func (m Mark) Settled() bool { return m.At == m.Seen }

// Check returns ErrOtherStore if the derived data is of another store. It returns lineage.ErrDiverged if it is of
// commits that the store does not have: the store lost them, or is a copy that was continued differently.
func (m Mark) Check(ctx context.Context, s *lineage.Store) error {
	if err := m.checkStore(s); err != nil {
		return err
	}
	for _, err := range s.View().Feed(ctx, m.Seen) {
		return err
	}
	return nil
}

func (m Mark) checkStore(s *lineage.Store) error {
	if id := s.ID(); !m.Store.IsZero() && m.Store != id {
		return fmt.Errorf("store %v, derived data of store %v: %w", id, m.Store, ErrOtherStore)
	}
	return nil
}
