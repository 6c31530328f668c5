package search

import (
	"context"
	"database/sql"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
)

// apply adds the steps of the commits, and then the state of the subjects that they changed. A window is one transaction.
func apply(ctx context.Context, w *derived.Window[*sql.Tx]) error {
	words := make(query.Terms)
	return w.Finish(ctx, func(tx *sql.Tx) error {
		seen, err := derivedfile.NewWriter(ctx, w, tx)
		if err != nil {
			return err
		}
		seen.Sees = func(metadata []byte) bool { return !lineage.BesideMessages(metadata) }
		f := &writer{Writer: seen, words: words, roles: make(map[role]int64), contents: make(map[searched.TextID]indexedText)}
		_, err = f.Get(ctx, `SELECT spans, texts, model, EXISTS (SELECT 1 FROM erased) FROM meta`, nil, &f.spans, &f.text, &f.model, &f.erased)
		if err != nil {
			return err
		}
		if err := f.Add(ctx, w.Commits, f.addSpan); err != nil {
			return err
		}
		if err := f.settle(ctx); err != nil {
			return err
		}
		return f.Exec(ctx, `UPDATE meta SET spans = ?, texts = ?`, f.spans, f.text)
	})
}
