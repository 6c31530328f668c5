package project

import (
	"cmp"
	"context"
	"errors"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// The table contexts has a row for each context and each remnant, and every parent has a row. If the scope of a
// parent is written later in the pass, the parent has the row of a remnant until then. A row is deleted when the
// store has neither a context nor a remnant with its id.

// contextRow returns the row of a context.
func (v *visibility) contextRow(ctx context.Context, c *backend.Context) ([]any, error) {
	var text, contentID any
	var embedding []byte
	parent, err := v.w.parentOf(ctx, c.Parent)
	if err != nil {
		return nil, err
	}
	last, err := v.w.latestSummary(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	if last != nil {
		contentID, embedding = last.Content.String(), last.Embedding
		body, err := v.w.stored(ctx, last.Content)
		if err != nil {
			return nil, err
		}
		text = projected.BytesText(body)
	}
	var branchID any
	if v.record != nil {
		branch, err := backend.BranchOf(ctx, v.w.state, c.Thread, c.ID)
		if err != nil {
			return nil, err
		}
		if branch != nil {
			branchID = cmp.Or(branch.SourceID, c.ID.String())
		}
	}
	o := &c.Overrides
	return []any{
		c.ID.String(), parent, projected.RefText(c.Tip), text, embedding, projected.CleanOptional(o.SystemPrompt), projected.CleanOptional(o.Model), c.CreatedAt.UnixMilli(),
		projected.IDText(c.Thread), v.chatID(), projected.RefText(c.Base), projected.IDText(c.Set), contentID, projected.BytesText(o.JSON), projected.BytesText(c.Metadata), branchID, 0,
	}, nil
}

// writeContexts writes the contexts that changed, and records their tips as pins.
func (v *visibility) writeContexts(ctx context.Context) error {
	var pins, rows [][]any
	if !v.w.ChatsOnly {
		ids := make([]structure.ContextID, 0, 2*len(v.written))
		for i := range v.written {
			ids = append(ids, v.written[i].ID, v.written[i].Parent)
		}
		if err := v.w.readPlaces(ctx, ids); err != nil {
			return err
		}
	}
	for _, c := range v.written {
		pins = append(pins, []any{c.ID.String(), v.key, projected.IDText(c.Tip.Run), int64(c.Tip.Seq)})
		if v.w.ChatsOnly {
			continue
		}
		row, err := v.contextRow(ctx, &c)
		if err != nil {
			return err
		}
		before, known := v.w.places[c.ID]
		if rows, err = v.w.place(ctx, rows, c.ID, c.Parent, row); err != nil {
			return err
		}
		if known && !before.remnant {
			continue // it has its values and summaries
		}
		if err := v.w.addValues(ctx, contextOwner(c.ID), true); err != nil {
			return err
		}
		if err := v.w.addSummaries(ctx, c.ID, true); err != nil {
			return err
		}
	}
	v.w.batch.want(tables.Contexts, nil, rows...)
	var owner []any
	if v.full { // the other contexts are gone
		owner = []any{v.key}
	}
	v.w.put(v.w.empty, tables.Pins, owner, pins...) // even a new scope may have had pins: see removeScope
	return nil
}

// writeRemnants writes the remnants of deleted contexts.
func (w *applier) writeRemnants(ctx context.Context, deleted []string) error {
	if w.ChatsOnly {
		return nil
	}
	for part := range lists.Batches(deleted, lists.Max) {
		var left []*structure.Remnant
		var ids []structure.ContextID
		for _, text := range part {
			id, err := parseContext(text)
			if err != nil {
				return err
			}
			r, err := w.state.Remnant(ctx, id)
			if errors.Is(err, lineage.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			left, ids = append(left, r), append(ids, id, r.Parent)
		}
		if err := w.readPlaces(ctx, ids); err != nil {
			return err
		}
		var rows [][]any
		for _, r := range left {
			row, err := w.remnantRow(ctx, r)
			if err == nil {
				rows, err = w.place(ctx, rows, r.ID, r.Parent, row)
			}
			if err != nil {
				return err
			}
		}
		w.batch.want(tables.Contexts, nil, rows...)
		if err := w.flushFull(ctx); err != nil {
			return err
		}
	}
	return nil
}

// writeSummaries writes the summaries of contexts whose summaries may have changed.
func (w *applier) writeSummaries(ctx context.Context, contexts map[structure.ContextID]bool) error {
	if w.ChatsOnly {
		return nil
	}
	for id := range contexts {
		c, err := w.state.Context(ctx, id)
		there, err := exists(c, err)
		if in := scopeOfContext(&c); err == nil && there && !w.isOut(in.key) {
			_, err = w.holding(ctx, &in, func() error { return w.addSummaries(ctx, id, false) })
		}
		if err == nil {
			err = w.flushFull(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
