package search

import (
	"context"
	"database/sql"
	"errors"

	"github.com/lineage-store/lineage/internal/searched"
)

// search implements index.
func (x *fileIndex) search(ctx context.Context, f *activeSearch) (hits []Hit, err error) {
	update := x.Update
	if f.Vector != nil {
		update = x.Embed
	}
	err = x.file.Repaired(ctx, func() error { // for damage that the update does not find
		for {
			if err := update(ctx); err != nil {
				return err
			}
			if hits, err = x.findIn(ctx, f); !errors.Is(err, searched.ErrUnsettled) {
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
		if err := conn.QueryRowContext(ctx, `SELECT number = seen_number AND id = seen_id FROM meta`).Scan(&settled); err != nil {
			return err
		}
		if !settled {
			return searched.ErrUnsettled
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
