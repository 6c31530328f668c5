package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/lineage/backend"
)

// collected describes the last collection of a store.
type collected struct {
	epoch uint64    // random; 0 before the first
	live  *live.Set // what is in use; nil when every row has been rewritten
}

// collected returns the last collection.
func (l *log) collected(ctx context.Context) (c collected, err error) {
	var epoch int64
	var encoded []byte
	err = withLongRetry(ctx, readTime, func(ctx context.Context) error { // the list may be large
		return l.readOne(ctx, `SELECT s.epoch, c.live FROM lineage_store s LEFT JOIN lineage_collection c ON c.store = s.store AND c.epoch = s.epoch WHERE s.store = $1`,
			[]any{l.store}, &epoch, &encoded)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = errRemoved
	}
	if c.epoch = uint64(epoch); err == nil && encoded != nil {
		c.live, err = live.Decode(encoded, l.identity, "lineage_collection")
	}
	return c, err
}

// remaining returns the commits of a row without what is not in use, and reports whether there was any. What it removes is
// added to a report, which may be nil. A nil set keeps everything.
func (r *logRow) remaining(set *live.Set, gone *backend.CollectReport) (commits []embedded.Sequenced, changed bool, err error) {
	if gone == nil {
		gone = new(backend.CollectReport)
	}
	commits, err = r.commits()
	for i := 0; err == nil && set != nil && i < len(commits); i++ {
		var filtered []byte
		var less bool
		if filtered, less, err = set.FilterEncoded(commits[i].Number, commits[i].Payload, gone); less {
			commits[i].Payload, changed = filtered, true
		}
	}
	return commits, changed, err
}
