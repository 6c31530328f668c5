package project

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// lineage_values has named values: the latest of each key and, for contexts, the earlier ones that
// forks inherit. Rows are compared with the store by owner: all rows of an owner are written in one
// transaction.

// ownerText returns an owner as two columns.
func ownerText(o structure.Owner) (scope, owner string) {
	switch o.Scope {
	case structure.ThreadScope:
		owner = o.Thread.String()
	case structure.ContextScope:
		owner = o.Context.String()
	default:
		owner = o.Name
	}
	return o.Scope.String(), owner
}

// addValues adds the values of an owner to the batch. If isNew is set, the database has none.
func (w *applier) addValues(ctx context.Context, owner structure.Owner, isNew bool) error {
	if w.ChatsOnly {
		return nil
	}
	var rows [][]any
	var forks *forkPositions
	for latest, err := range w.state.Values(ctx, owner, "", "") {
		if err != nil {
			return err
		}
		if owner.Scope != structure.ContextScope && latest.Deleted() {
			continue
		}
		row, err := w.valueRow(ctx, &latest, true)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		if owner.Scope != structure.ContextScope {
			continue
		}
		if forks == nil {
			if forks, err = w.forksOf(ctx, owner.Context); err != nil {
				return err
			}
		}
		inherited, err := w.inherited(ctx, &latest, forks)
		if err != nil {
			return err
		}
		rows = append(rows, inherited...)
	}
	if len(rows) == 0 && owner.Scope == structure.ContextScope {
		return nil // a deletion is stored as a value, so the context never had values
	}
	scope, name := ownerText(owner)
	w.put(isNew, tables.Values, []any{scope, projected.Clean(name)}, rows...)
	return nil
}

// valueRow returns the row of a value.
func (w *applier) valueRow(ctx context.Context, v *backend.Value, latest bool) ([]any, error) {
	value := v.JSON
	if !v.Content.IsZero() {
		var err error
		if value, err = w.stored(ctx, v.Content); err != nil {
			return nil, err
		}
	}
	scope, owner := ownerText(v.Owner)
	sum := sha256.Sum256([]byte(scope + "\x00" + owner + "\x00" + v.Key + "\x00" + strconv.FormatUint(v.Commit, 10)))
	w.batch.bytes += len(value) + 300
	return []any{
		hex.EncodeToString(sum[:]), scope, projected.Clean(owner), projected.Clean(v.Key), projected.BytesText(value), projected.HashText(v.Content),
		projected.Boolean(latest), v.At.UnixMilli(), int64(v.Commit), projected.RefText(v.Seen),
	}, nil
}

// inherited returns rows with the earlier values of a key that forks inherit instead of the latest one.
func (w *applier) inherited(ctx context.Context, latest *backend.Value, forks *forkPositions) (rows [][]any, err error) {
	if len(forks.at) == 0 {
		return nil, nil
	}
	open := slices.Clone(forks.at)
	for was, err := range w.state.ValueHistory(ctx, latest.ValueKey) {
		if err != nil {
			return nil, err
		}
		left := open[:0]
		for _, at := range open {
			before, err := was.SetBefore(at, forks.runs)
			if err != nil {
				return nil, err
			}
			if !before {
				left = append(left, at)
			}
		}
		if len(left) < len(open) && was.Commit != latest.Commit {
			row, err := w.valueRow(ctx, &was, false)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
		if open = left; len(open) == 0 {
			break
		}
	}
	return rows, nil
}

// forkPositions are the spans as of which the descendants of a context read its values.
type forkPositions struct {
	at   []structure.SpanRef
	runs structure.RunLookup
}

// forksOf reads all descendants of a context.
func (w *applier) forksOf(ctx context.Context, id structure.ContextID) (*forkPositions, error) {
	found := &forkPositions{runs: backend.Runs(ctx, w.state)}
	known := make(map[structure.SpanRef]bool)
	seen := map[structure.ContextID]bool{id: true}
	// below visits the children of a context. bases are the bases on the path to the context.
	var below func(parent structure.ContextID, bases []structure.SpanRef) error
	below = func(parent structure.ContextID, bases []structure.SpanRef) error {
		for child, err := range w.state.Children(ctx, parent, structure.ContextID{}) {
			if err != nil {
				return err
			}
			if seen[child.ID] || w.omitsContext(&child) {
				continue
			}
			seen[child.ID] = true
			at := child.Base
			for _, base := range slices.Backward(bases) {
				if at, err = structure.InheritedAt(at, base, found.runs); err != nil {
					return err
				}
			}
			if !known[at] {
				known[at], found.at = true, append(found.at, at)
			}
			if err := below(child.ID, append(bases[:len(bases):len(bases)], child.Base)); err != nil {
				return err
			}
		}
		return nil
	}
	return found, below(id, nil)
}

// addFork adds the earlier values that a context inherits. It reads no other forks.
func (w *applier) addFork(ctx context.Context, id structure.ContextID) error {
	fork, err := w.state.Context(ctx, id)
	if errors.Is(err, lineage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if w.omitsContext(&fork) {
		return nil
	}
	forks := &forkPositions{at: []structure.SpanRef{fork.Base}, runs: backend.Runs(ctx, w.state)}
	seen := map[structure.ContextID]bool{id: true}
	for ancestor := fork.Parent; !ancestor.IsZero() && !seen[ancestor]; {
		seen[ancestor] = true
		above, err := w.state.Context(ctx, ancestor)
		if errors.Is(err, lineage.ErrNotFound) || err == nil && w.omitsContext(&above) {
			break
		}
		if err != nil {
			return err
		}
		in := scopeOfContext(&above)
		if held, err := w.holding(ctx, &in, func() error { return w.addInherited(ctx, ancestor, forks) }); err != nil || !held {
			return err
		}
		ancestor = above.Parent
		if forks.at[0], err = structure.InheritedAt(forks.at[0], above.Base, forks.runs); err != nil {
			return err
		}
	}
	return w.flushFull(ctx)
}

// addInherited adds the earlier values of a context that forks inherit.
func (w *applier) addInherited(ctx context.Context, ancestor structure.ContextID, forks *forkPositions) error {
	for latest, err := range w.state.Values(ctx, contextOwner(ancestor), "", "") {
		if err != nil {
			return err
		}
		rows, err := w.inherited(ctx, &latest, forks)
		if err != nil {
			return err
		}
		for _, row := range rows {
			w.batch.need(tables.Values, row[0].(string), row[1:]...)
		}
	}
	return nil
}

// writeValues writes the values of owners and those that forks inherit.
func (w *applier) writeValues(ctx context.Context, forks []structure.ContextID) error {
	if w.ChatsOnly {
		return nil
	}
	for _, id := range forks {
		if err := w.addFork(ctx, id); err != nil {
			return err
		}
	}
	for len(w.valueOwners) > 0 { // a scope that is left out adds some
		for owner := range w.valueOwners {
			delete(w.valueOwners, owner)
			if err := w.writeValuesOf(ctx, owner); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeValuesOf writes the values of an owner. Rows of deleted owners, and of those that are left out, are deleted with
// them.
func (w *applier) writeValuesOf(ctx context.Context, owner structure.Owner) error {
	var in scope
	var there bool
	var err error
	switch owner.Scope {
	case structure.ThreadScope:
		in = scope{key: keyOfThread(owner.Thread), thread: owner.Thread}
		there, err = exists(w.state.Thread(ctx, owner.Thread))
	case structure.ContextScope:
		var c backend.Context
		c, err = w.state.Context(ctx, owner.Context)
		in = scopeOfContext(&c)
		there, err = exists(c, err)
	default:
		return w.writeOwner(ctx, &scope{key: keyOfOwner(owner)}, owner)
	}
	if err != nil || !there || w.isOut(in.key) {
		return err
	}
	if _, err = w.holding(ctx, &in, func() error { return w.addValues(ctx, owner, false) }); err != nil {
		return err
	}
	return w.flushFull(ctx)
}

// writeOwner writes the values of a user, an application or the store, or leaves them out if the database cannot hold one
// of them. Then it has no row of them.
func (w *applier) writeOwner(ctx context.Context, in *scope, owner structure.Owner) error {
	if w.check != nil {
		return w.addValues(ctx, owner, false)
	}
	held, err := w.holding(ctx, in, func() error { return w.addValues(ctx, owner, w.isOut(in.key)) })
	if err != nil {
		return err
	}
	if held {
		if err := w.admit(ctx, in); err != nil {
			return err
		}
		return w.flushFull(ctx)
	}
	scope, name := ownerText(owner)
	w.batch.want(tables.Values, []any{scope, projected.Clean(name)})
	err = w.flush(ctx)
	if w.isRefusal(err) { // of the name: there are no rows
		w.batch = batch{}
		w.batch.want(tables.LeftOut, nil, []any{in.key, w.leftOut[in.key]})
		return w.flushFull(ctx)
	}
	return err
}
