package lineage

import (
	"github.com/lineage-store/lineage/lineage/backend"
)

// Unsynced returns the store with changes of durability Normal, whatever durability it was opened with. It is for
// many changes that are made durable together by [Store.Sync] at the end.
func (s *Store) Unsynced() *Store {
	return onEngine(s.engine, s.writer.With(backend.Normal))
}
