package lineage

import (
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// ID returns the id that the store was given when it was made, which its copies
// share; zero if its engine knows of none.
func (s *Store) ID() structure.StoreID {
	if engine, ok := s.engine.(backend.Identified); ok {
		return engine.StoreID()
	}
	return structure.StoreID{}
}
