package project

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

func scanPlaced(rows *sqladapter.Rows) (placed, error) {
	var p placed
	var remnant int64
	err := rows.Scan(&p.id, &p.parent, &remnant)
	p.remnant = remnant != 0
	return p, err
}

// contextParent is the index of the parent in a row of contexts.
const contextParent = 1

// remnantRow returns the row of a remnant.
func (w *applier) remnantRow(ctx context.Context, r *structure.Remnant) ([]any, error) {
	parent, err := w.parentOf(ctx, r.Parent)
	o := &r.Overrides
	return []any{
		r.ID.String(), parent, nil, nil, nil, projected.CleanOptional(o.SystemPrompt), projected.CleanOptional(o.Model), int64(0),
		nil, nil, nil, nil, nil, projected.BytesText(o.JSON), nil, nil, 1,
	}, err
}

// parentOf returns the id of the parent for a row, null if there is none.
func (w *applier) parentOf(ctx context.Context, parent structure.ContextID) (any, error) {
	if parent.IsZero() {
		return nil, nil
	}
	if ok, err := exists(backend.AncestorOf(ctx, w.state, parent)); !ok {
		return nil, err
	}
	return parent.String(), nil
}

// readPlaces reads which of some contexts have rows.
func (w *applier) readPlaces(ctx context.Context, ids []structure.ContextID) error {
	if w.empty || w.check != nil {
		return nil // all rows are of this pass
	}
	var missing []string
	for _, id := range ids {
		if _, known := w.places[id]; !known && !id.IsZero() {
			missing = append(missing, id.String())
		}
	}
	found, err := lists.ReadList(ctx, w.DB, scanPlaced, contextSQL.placed, missing)
	if err != nil {
		return err
	}
	for _, p := range found {
		id, err := parseContext(p.id)
		if err != nil {
			return err
		}
		w.places[id] = p
	}
	return nil
}

// place adds the row of a context or remnant to the batch, after the rows of its ancestors. A row that is in the
// database already is appended to rows instead. These rows are written after the new ones.
func (w *applier) place(ctx context.Context, rows [][]any, id, parent structure.ContextID, row []any) ([][]any, error) {
	var above []backend.Ancestor
	seen := map[structure.ContextID]bool{id: true} // the store may be damaged
	for at := parent; !at.IsZero() && !seen[at]; {
		seen[at] = true
		a, err := backend.AncestorOf(ctx, w.state, at)
		if errors.Is(err, lineage.ErrNotFound) {
			break
		}
		omitted := false
		if err == nil && !a.Deleted && w.check != nil {
			omitted, err = w.omits(ctx, at)
		}
		if err != nil {
			return nil, err
		}
		if w.check != nil && !a.Deleted && !omitted { // a comparison writes all other contexts
			break
		}
		if err := w.readPlaces(ctx, []structure.ContextID{at}); err != nil {
			return nil, err
		}
		if _, there := w.places[at]; there {
			break
		}
		above, at = append(above, a), a.Parent
	}
	for _, a := range slices.Backward(above) {
		row, err := w.remnantRow(ctx, &a.Remnant)
		if err != nil {
			return nil, err
		}
		rows = w.placeRow(rows, a.ID, row, true)
	}
	return w.placeRow(rows, id, row, row[len(row)-1] == 1), nil
}

// placeRow adds the row of a context to the batch, or appends it to rows if the database has one.
func (w *applier) placeRow(rows [][]any, id structure.ContextID, row []any, remnant bool) [][]any {
	was, there := w.places[id]
	fork := placed{id: id.String(), remnant: remnant}
	if row[contextParent] != nil {
		fork.parent = sql.NullString{String: row[contextParent].(string), Valid: true}
	}
	w.places[id] = fork
	w.batch.bytes += 500
	if !there {
		w.batch.add(tables.Contexts, row...)
		return rows
	}
	if was.parent.Valid && was.parent != fork.parent {
		w.batch.after = append(w.batch.after, func(ctx context.Context, c *sqladapter.Conn) error {
			return w.pruneContexts(ctx, c, []string{was.parent.String})
		})
	}
	return append(rows, row)
}

// parseContext returns the id of a row of contexts.
func parseContext(text string) (structure.ContextID, error) {
	id, err := structure.ParseID[structure.ContextID](text)
	if err != nil {
		err = fmt.Errorf("table contexts: %w: %w", sqladapter.ErrCorrupt, err)
	}
	return id, err
}

// removeContexts deletes contexts with their values and summaries. Their pins remain. What forks inherit is kept for
// contexts that the store has, also as remnants.
func (w *applier) removeContexts(ctx context.Context, c *sqladapter.Conn, ids []string) error {
	for _, s := range []sqladapter.Statement{valueSQL.removeOfContexts, summarySQL.removeOfContexts} {
		if err := lists.ExecList(ctx, c, s, ids); err != nil {
			return err
		}
	}
	gone, err := w.goneContexts(ctx, ids)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return gone[id] })
	if err := lists.ExecList(ctx, c, contextSQL.clear, left); err != nil {
		return err
	}
	return w.pruneContexts(ctx, c, slices.Sorted(maps.Keys(gone)))
}

// pruneContexts deletes the rows of contexts and of their ancestors if the store does not have them. Rows of their
// forks are deleted or rewritten by this pass.
func (w *applier) pruneContexts(ctx context.Context, c *sqladapter.Conn, ids []string) error {
	above, err := lists.CollectList(ctx, c, lists.ScanString, contextSQL.ancestors, ids)
	if err != nil {
		return err
	}
	gone, err := w.goneContexts(ctx, append(above, ids...))
	if err != nil {
		return err
	}
	list := slices.Sorted(maps.Keys(gone))
	for _, s := range []sqladapter.Statement{contextSQL.orphan, tables.Contexts.Remove} {
		if err := lists.ExecList(ctx, c, s, list); err != nil {
			return err
		}
	}
	return nil
}

// goneContexts returns the contexts that the store has neither as contexts nor as remnants.
func (w *applier) goneContexts(ctx context.Context, ids []string) (map[string]bool, error) {
	gone := make(map[string]bool)
	for _, text := range ids {
		id, err := parseContext(text)
		if err != nil {
			return nil, err
		}
		ok, err := exists(backend.AncestorOf(ctx, w.state, id))
		if err != nil {
			return nil, err
		}
		if !ok {
			gone[text] = true
		}
	}
	return gone, nil
}
