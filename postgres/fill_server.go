package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/lineage/backend"
)

// served is a sink in the tables of the server. From begin on, no other process can fill the epoch.
type served struct {
	log *log
	tx  *writeTx
}

// begin implements sink.
func (s *served) begin(ctx context.Context, epoch uint64) (st state, fetch func(context.Context, need) (fetchResult, error), err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	conn, err := s.log.acquire(ctx)
	if err != nil {
		return st, nil, err
	}
	s.tx = &writeTx{s.log, conn, epoch}
	var b pgx.Batch
	begin(&b)
	b.Queue(`INSERT INTO lineage_head (store, epoch, first, n, id, numbers, folded, unfolded) VALUES ($1, $2, 0, 0, 0, $3, 0, 0) ON CONFLICT DO NOTHING`, s.log.store, int64(epoch), encodeCounts(st.counts))
	b.Queue(`SELECT h.first, h.n, h.id, h.numbers, EXISTS (SELECT FROM lineage_collection c WHERE c.store = $1) FROM lineage_head h WHERE h.store = $1 AND h.epoch = $2 FOR UPDATE OF h`,
		s.log.store, int64(epoch)).QueryRow(func(r pgx.Row) error {
		var first, n, id int64
		var counts []byte
		if err := r.Scan(&first, &n, &id, &counts, &st.collecting); err != nil {
			return err
		}
		st.head = head{uint64(first), backend.Cursor{Number: uint64(n), ID: uint64(id)}, epoch}
		return decodeCounts(counts, &st.counts)
	})
	// Nothing of an earlier attempt may be there.
	b.Queue(`DELETE FROM lineage_entry WHERE store = $1 AND epoch = $2 AND (SELECT n FROM lineage_head WHERE store = $1 AND epoch = $2) = 0`, s.log.store, int64(epoch))
	b.Queue(`DELETE FROM lineage_former WHERE store = $1 AND epoch = $2 AND (SELECT n FROM lineage_head WHERE store = $1 AND epoch = $2) = 0`, s.log.store, int64(epoch))
	return st, s.tx.read, send(ctx, conn, &b)
}

// end implements sink.
func (s *served) end(ctx context.Context, st state, entries []entryVersion) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	var b pgx.Batch
	queueDurability(&b, backend.Normal)
	s.log.queueOutput(&b, st.epoch, st.Number, output{entries: entries})
	s.log.queueHead(&b, st.head, st.counts, st.folded, 0)
	return s.tx.commit(ctx, &b)
}

// abandon implements sink.
func (s *served) abandon() { s.tx.rollback() }
