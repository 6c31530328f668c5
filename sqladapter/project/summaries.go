package project

import (
	"context"
	"encoding/json"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// Summaries are in lineage_summaries, and are deleted with their context. All summaries of a context are compared
// with the store in one transaction.

var summarySQL = struct {
	contextsOf, removeOfContexts sqladapter.Statement
}{
	contextsOf:       `SELECT DISTINCT "context_id" FROM "lineage_summaries" WHERE "content_id" IN ({list})`,
	removeOfContexts: `DELETE FROM "lineage_summaries" WHERE "context_id" IN ({list})`,
}

// latestSummary returns the last created summary of a context, nil if there is none.
func (w *applier) latestSummary(ctx context.Context, id structure.ContextID) (last *structure.Summary, err error) {
	for s, err := range w.state.Summaries(ctx, id) {
		if err != nil {
			return nil, err
		}
		last = s
	}
	return last, nil
}

// addSummaries adds the summaries of a context to the batch. If isNew is set, the database has none.
func (w *applier) addSummaries(ctx context.Context, id structure.ContextID, isNew bool) error {
	var rows [][]any
	for s, err := range w.state.Summaries(ctx, id) {
		if err != nil {
			return err
		}
		text, err := w.stored(ctx, s.Content)
		if err != nil {
			return err
		}
		var parts any
		if len(s.Parts) > 0 {
			list, err := json.Marshal(s.Parts)
			if err != nil {
				return err
			}
			parts = string(list)
		}
		rows = append(rows, []any{
			s.ID.String(), id.String(), int64(s.Level), projected.RefText(s.From), projected.RefText(s.To), parts, s.Content.String(), projected.BytesText(text),
			chatrows.Optional(projected.Clean(s.Model)), s.Embedding, s.CreatedAt.UnixMilli(),
		})
		w.batch.bytes += 300 + len(s.Embedding) + len(text)
	}
	w.put(isNew, tables.Summaries, []any{id.String()}, rows...)
	return nil
}
