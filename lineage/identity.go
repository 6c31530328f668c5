package lineage

import (
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

type storeKind struct{}

// StoreID tells stores apart.
type StoreID = structure.ID[storeKind]

// ID returns the id that the store was given when it was made, which its copies
// share; zero if its engine knows of none.
func (s *Store) ID() StoreID {
	if engine, ok := s.engine.(backend.Identified); ok {
		return StoreID(engine.StoreID())
	}
	return StoreID{}
}
