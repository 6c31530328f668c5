package lineage

import (
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// ID returns the id that the store got when it was created. Copies share it. It is zero if the
// engine has none.
func (s *Store) ID() structure.StoreID {
	if engine, ok := s.engine.(backend.Identified); ok {
		return engine.StoreID()
	}
	return structure.StoreID{}
}
