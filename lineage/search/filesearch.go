package search

import (
	"context"
	"database/sql"
	"errors"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
)

// search implements index.
func (x *fileIndex) search(ctx context.Context, f *activeSearch) (hits []Hit, err error) {
	until := f.until()
	update := func() error { return x.update(ctx, until) }
	if f.Vector != nil {
		update = func() error { return x.Embed(ctx) }
	}
	err = x.file.Repaired(ctx, func() error { // for damage that the update does not find
		for restarts := 0; ; {
			if err := update(); !f.setOutdated(err) {
				return err
			}
			hits, err = x.findIn(ctx, f)
			switch {
			case errors.Is(err, searched.ErrUnsettled):
			case f.outdated != nil && errors.Is(err, lineage.ErrExpired) && restarts < mostRestarts: // what the store had when the search began
				restarts++
			default:
				return err
			}
		}
	})
	return hits, err
}

// findIn runs a search on one state of the file.
func (x *fileIndex) findIn(ctx context.Context, f *activeSearch) (hits []Hit, err error) {
	err = x.file.With(func(db *sql.DB) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
			return err
		}
		defer conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		var settled bool
		var at uint64
		if err := conn.QueryRowContext(ctx, `SELECT number = seen_number AND id = seen_id, number FROM meta`).Scan(&settled, &at); err != nil {
			return err
		}
		if f.scope.Unsettled {
			err = f.setBehind(ctx, at)
		} else if !settled {
			err = searched.ErrUnsettled
		}
		if err != nil {
			return err
		}
		view := &fileView{conn}
		if err := view.enter(ctx, &f.scope); err != nil {
			return err
		}
		f.view = view
		if f.Vector != nil {
			hits, err = f.nearest(ctx, view)
			return err
		}
		hits, err = f.find(ctx)
		return err
	})
	return hits, err
}
