package threads

import (
	"context"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/structure"
)

// usages adds the usage of the answers that count in each thread to records of threads. It adds nothing until 'lineage
// usage' was called once, because the first call reads the whole store. It also adds nothing if the usage cannot be
// computed, as in a store that is damaged or cannot be written to.
type usages struct{ index *usage.Index }

// openUsages opens the usages of a store.
func openUsages(ctx context.Context, s *app.OpenStore) (*usages, error) {
	if !usage.Exists(s.Dir) {
		return &usages{}, nil
	}
	index, err := usage.Open(ctx, s.Store, s.Dir, usage.Options{})
	if err != nil {
		return &usages{}, ctx.Err()
	}
	return &usages{index}, nil
}

func (u *usages) close() {
	if u.index != nil {
		_ = u.index.Close() // it was read
	}
}

// add sets the usages of threads.
func (u *usages) add(ctx context.Context, list ...*records.Thread) error {
	if len(list) == 0 || u.index == nil {
		return nil
	}
	ids := make([]lineage.ThreadID, len(list))
	for i, r := range list {
		var err error
		if ids[i], err = structure.ParseID[lineage.ThreadID](r.ID); err != nil {
			return err
		}
	}
	report, err := u.index.Report(ctx, usage.Query{By: []usage.By{usage.Thread}, CountedIn: ids})
	if err != nil {
		return ctx.Err()
	}
	rows := make(map[string]*usage.Row, len(report.Rows))
	for i := range report.Rows {
		rows[report.Rows[i].Keys[0]] = &report.Rows[i]
	}
	for _, r := range list {
		if row := rows[r.ID]; row != nil {
			figures := row.Figures.Record()
			r.Usage = &figures
		}
	}
	return nil
}
