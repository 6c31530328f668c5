package lineage

import (
	"github.com/lineage-store/lineage/lineage/backend"
)

// Unsynced returns the store with changes of durability Normal, whatever the store was opened with: for many changes of which
// [Store.Sync] makes the last one durable.
func (s *Store) Unsynced() *Store {
	return onEngine(s.engine, s.writer.With(backend.Normal))
}
