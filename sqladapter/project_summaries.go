package sqladapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// Summaries are in lineage_summaries, and go with their context. All of one context are compared
// with the store in one transaction. The row of a summary does not change, but for its text and
// embedding.

var summarySQL = struct{ ofContext, contextsOf, remove, fill Statement }{
	ofContext: `SELECT "id" FROM "lineage_summaries" WHERE "context_id" = ?`,
	remove:    `DELETE FROM "lineage_summaries" WHERE "id" IN ({list})`,
	fill:      `UPDATE "lineage_summaries" SET "summary_text" = ?, "embedding" = ? WHERE "id" = ?`,
	// contextsOf may be contexts in which the summary is not the latest.
	contextsOf: `SELECT DISTINCT "context_id" FROM "lineage_summaries" WHERE "content_id" = ?`,
}

// contextSummaries are the rows of the summaries of a context.
type contextSummaries struct {
	context string
	rows    [][]any
}

// latestSummary returns the summary of a context that was made last, nil if there is none.
func (w *projection) latestSummary(ctx context.Context, id structure.ContextID) (last *structure.Summary, err error) {
	for s, err := range w.state.Summaries(ctx, id) {
		if err != nil {
			return nil, err
		}
		last = s
	}
	return last, nil
}

// summaryText returns what a summary says, nil where that was erased.
func (w *projection) summaryText(ctx context.Context, s *structure.Summary) (text any, err error) {
	blocks, err := w.state.Blocks(ctx, []content.ID{s.Content})
	if err == nil {
		var body []byte
		if body, err = w.body(ctx, blocks[0]); body != nil {
			text = w.DB.clean(string(body))
		}
	}
	if errors.Is(err, lineage.ErrErased) || errors.Is(err, lineage.ErrNotFound) {
		w.batch.need(tables.Erased, s.Content.String())
		err = nil
	}
	return text, err
}

// summariesOf returns the projected summaries with a text, in the order of their contexts' lists.
func (w *projection) summariesOf(ctx context.Context, text content.ID) (found []*structure.Summary, err error) {
	var contexts []string
	err = w.DB.Read(ctx, func(c *Conn) error {
		contexts, err = collect(ctx, c, scanString, summarySQL.contextsOf, text.String())
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, of := range contexts {
		id, err := structure.ParseID[structure.ContextID](of)
		if err != nil {
			return nil, fmt.Errorf("context of a summary: %w", err)
		}
		for s, err := range w.state.Summaries(ctx, id) {
			if err != nil {
				return nil, err
			}
			if s.Content == text {
				found = append(found, s)
			}
		}
	}
	return found, nil
}

// addSummaries adds the summaries of a context to the batch. The database has none of one that is new.
func (w *projection) addSummaries(ctx context.Context, id structure.ContextID, isNew bool) error {
	of := contextSummaries{context: id.String()}
	for s, err := range w.state.Summaries(ctx, id) {
		if err != nil {
			return err
		}
		text, err := w.summaryText(ctx, s)
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
		of.rows = append(of.rows, []any{
			s.ID.String(), of.context, int64(s.Level), refText(s.From), refText(s.To), parts, s.Content.String(), text,
			optional(w.DB.clean(s.Model)), s.Embedding, s.CreatedAt.UnixMilli(),
		})
		w.batch.bytes += 300 + len(s.Embedding)
		if text, is := text.(string); is {
			w.batch.bytes += len(text)
		}
	}
	if len(of.rows) == 0 && isNew {
		return nil
	}
	w.batch.summaries = append(w.batch.summaries, of)
	w.batch.n += 1 + len(of.rows)
	return nil
}

// writeSummaries writes the summaries of contexts that have others than before.
func (w *projection) writeSummaries(ctx context.Context, contexts map[structure.ContextID]bool) error {
	if w.ChatsOnly {
		return nil
	}
	for id := range contexts {
		there, err := exists(w.state.Context(ctx, id))
		if err == nil && there {
			err = w.addSummaries(ctx, id, false)
		}
		if err == nil {
			err = w.room(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// replaceSummaries makes the rows of a context those that are given.
func (c *Conn) replaceSummaries(ctx context.Context, of contextSummaries) error {
	has, err := collect(ctx, c, scanString, summarySQL.ofContext, of.context)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(has))
	for _, id := range has {
		there[id] = true
	}
	var added [][]any
	for _, row := range of.rows {
		if id := row[0].(string); there[id] {
			delete(there, id)
		} else {
			added = append(added, row)
		}
	}
	if err := c.execAll(ctx, summarySQL.remove, slices.Sorted(maps.Keys(there))); err != nil {
		return err
	}
	return c.insert(ctx, sqlOf[tables.Summaries].insert, added)
}

// summaryRows returns the rows of summaries.
func summaryRows(list []contextSummaries) (rows [][]any) {
	for _, of := range list {
		rows = append(rows, of.rows...)
	}
	return rows
}
