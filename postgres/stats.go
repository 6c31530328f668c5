package postgres

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
)

// rowBytes is the size of a row of the log without its data: header, other columns, index entry.
const rowBytes = 24 + 48 + 48

// Stats implements backend.Reader. The sizes are those of the log; a snapshot has those of the
// replica. It reads the length of each row.
func (e *Engine) Stats(ctx context.Context) (backend.Stats, error) {
	s, err := e.readers.Stats(ctx)
	if err != nil {
		return s, err
	}
	stored, err := e.storedBytes(ctx)
	s.StoredBytes, s.IndexBytes, s.OtherBytes, s.UnpackedBytes = stored, 0, 0, 0
	return s, err
}

func (e *Engine) storedBytes(ctx context.Context) (uint64, error) {
	var stored int64
	err := again(ctx, func(ctx context.Context) error {
		return e.log.pool.QueryRow(ctx, `SELECT coalesce(sum(pg_column_size(data) + $2::bigint), 0)::bigint FROM lineage_log WHERE store = $1`, e.log.store, int64(rowBytes)).Scan(&stored)
	})
	return uint64(stored), err
}
