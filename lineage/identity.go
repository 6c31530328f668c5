package lineage

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// ID returns the id that the store got when it was created. Copies share it. It is zero if the
// engine has none.
func (s *Store) ID() structure.StoreID {
	engine, err := ability[backend.Identified](context.Background(), s)
	if err != nil {
		return structure.StoreID{}
	}
	return engine.StoreID()
}
