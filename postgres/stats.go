package postgres

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
)

// rowBytes is the size of a row of the log without its data: header, other columns, index entry. entryBytes is that of a
// version of an entry without key and value; the index has the key once more.
const (
	rowBytes   = 24 + 48 + 48
	entryBytes = 24 + 24 + 24 + 56
)

// sizes sets the sizes of the store. It reads the length of each row.
func (e *Engine) sizes(ctx context.Context, s *backend.Stats) error {
	log, entries, err := e.stored(ctx)
	s.StoredBytes, s.IndexBytes, s.OtherBytes, s.UnpackedBytes = log+entries, entries, 0, 0
	return err
}

// storedBytes is the size of the store for a report, 0 if it is not found out.
func (e *Engine) storedBytes(ctx context.Context) uint64 {
	log, entries, err := e.stored(ctx)
	if err != nil {
		return 0
	}
	return log + entries
}

func (e *Engine) stored(ctx context.Context) (log, entries uint64, err error) {
	var ofLog, ofEntries int64
	err = withLongRetry(ctx, readTime, func(ctx context.Context) error {
		return e.log.readOne(ctx, `SELECT
  (SELECT coalesce(sum(pg_column_size(data) + $2::bigint), 0)::bigint FROM lineage_log WHERE store = $1),
  (SELECT coalesce(sum(2 * octet_length(key) + coalesce(octet_length(value), 0) + $3::bigint), 0)::bigint FROM lineage_entry WHERE store = $1)
  + (SELECT coalesce(sum(octet_length(changes)), 0)::bigint FROM lineage_former WHERE store = $1)`,
			[]any{e.log.store, int64(rowBytes), int64(entryBytes)}, &ofLog, &ofEntries)
	})
	return uint64(ofLog), uint64(ofEntries), err
}
