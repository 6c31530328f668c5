package project

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// work is what a pass has to do.
type work struct {
	// removed are scopes whose rows are all deleted. gone are deleted contexts.
	removed []string
	gone    []string
	scopes  []*scope
	// rewritten is content that was erased, and content that was stored again after that.
	rewritten []content.ID
	// owners are the owners whose values may have changed. forks are contexts that may inherit new values.
	owners map[structure.Owner]bool
	forks  []structure.ContextID
	// summarized are contexts whose summaries may have changed.
	summarized map[structure.ContextID]bool
}

// touchAll touches all scopes, and the owners that are neither threads nor contexts.
func (w *applier) touchAll(ctx context.Context, c *derived.Changes, touch func(scope) *scope) error {
	for t, err := range w.state.Threads(ctx, structure.ThreadID{}) {
		if err != nil {
			return err
		}
		touch(scope{key: keyOfThread(t.ID), thread: t.ID}).full = true
	}
	if w.ChatsOnly {
		return nil
	}
	for found, err := range w.state.Contexts(ctx, structure.ThreadID{}, structure.ContextID{}) {
		if err != nil {
			return err
		}
		if found.Thread.IsZero() {
			touch(scope{key: keyOfContext(found.ID), context: found.ID}).full = true
		}
	}
	for owner, err := range namedOwners(ctx, w.state) {
		if err != nil {
			return err
		}
		c.Values[owner] = true
	}
	return nil
}

// pin is the tip of a context at the time when it was last written.
type pin struct {
	id, scope string
	at        structure.SpanRef
}

func scanPin(rows *sqladapter.Rows) (pin, error) {
	var p pin
	var run sql.NullString
	if err := rows.Scan(&p.id, &p.scope, &run, &p.at.Seq); err != nil {
		return p, err
	}
	if run.Valid {
		var err error
		if p.at.Run, err = structure.ParseID[structure.RunID](run.String); err != nil {
			return p, fmt.Errorf("pin %q: %w: %w", p.id, sqladapter.ErrCorrupt, err)
		}
	}
	return p, nil
}

// resolve returns what to do for changes. The changes only name subjects. Their content is read from the state of the
// store.
func (w *applier) resolve(ctx context.Context, c *derived.Changes) (todo *work, err error) {
	scopes := make(map[string]*scope)
	touch := func(s scope) *scope {
		if scopes[s.key] == nil {
			scopes[s.key] = &s
		}
		return scopes[s.key]
	}
	removed := make(map[string]bool)
	todo = &work{summarized: make(map[structure.ContextID]bool)}
	if todo.rewritten, err = w.resolveContent(ctx, c); err != nil {
		return nil, err
	}
	for id, change := range c.Contexts {
		if change.Summarized {
			todo.summarized[id] = true
		}
	}
	if w.check != nil {
		if err := w.touchAll(ctx, c, touch); err != nil {
			return nil, err
		}
	}
	if err := w.resolveThreads(ctx, c, touch, removed); err != nil {
		return nil, err
	}
	if w.check == nil {
		if err := w.retry(ctx, c, touch); err != nil {
			return nil, err
		}
	}
	if err := w.resolveRuns(ctx, c.Runs, touch); err != nil {
		return nil, err
	}
	if todo.gone, err = w.resolveContexts(ctx, c, touch, removed); err != nil {
		return nil, err
	}
	if todo.removed, err = lists.ReadList(ctx, w.DB, lists.ScanString, tables.Scopes.Known, slices.Sorted(maps.Keys(removed))); err != nil {
		return nil, err
	}
	if todo.owners, todo.forks, err = w.owners(ctx, c, todo.removed); err != nil {
		return nil, err
	}
	todo.scopes, err = w.inOrder(ctx, scopes, removed)
	return todo, err
}

// inOrder returns scopes in the order in which they are written, and sets which of them are fresh or full.
func (w *applier) inOrder(ctx context.Context, scopes map[string]*scope, removed map[string]bool) (all []*scope, err error) {
	keys := slices.Sorted(maps.Keys(scopes))
	known, err := lists.ReadList(ctx, w.DB, lists.ScanString, tables.Scopes.Known, keys)
	if err != nil {
		return nil, err
	}
	has := make(map[string]bool, len(known))
	for _, key := range known {
		has[key] = !removed[key]
	}
	// What is left out may need ids that other scopes give up.
	slices.SortStableFunc(keys, func(a, b string) int { return projected.Boolean(w.isOut(a)) - projected.Boolean(w.isOut(b)) })
	for _, key := range keys {
		s := scopes[key]
		s.fresh = w.check != nil || !has[key]
		s.full = s.full || s.fresh || w.window != nil && w.window.Again // an older state may have had more
		all = append(all, s)
	}
	return all, nil
}

// resolveContent returns content that was erased, and content that was stored again after that. It also adds the
// contexts whose summaries have such content.
func (w *applier) resolveContent(ctx context.Context, c *derived.Changes) (ids []content.ID, err error) {
	if w.first {
		return nil, w.noteErased(ctx, c)
	}
	var stored, changed []string
	for _, id := range c.Stored {
		if !c.Erased[id] {
			stored = append(stored, id.String())
		}
	}
	if changed, err = lists.ReadList(ctx, w.DB, lists.ScanString, tables.Erased.Known, stored); err != nil {
		return nil, err
	}
	for id := range c.Erased {
		changed = append(changed, id.String())
	}
	slices.Sort(changed)
	changed = slices.Compact(changed)
	for _, text := range changed {
		id, err := content.ParseID(text)
		if err != nil {
			return nil, fmt.Errorf("table lineage_erased: %w: %w", sqladapter.ErrCorrupt, err)
		}
		ids = append(ids, id)
	}
	if w.ChatsOnly {
		return ids, nil
	}
	contexts, err := lists.ReadList(ctx, w.DB, lists.ScanString, summarySQL.contextsOf, changed)
	for _, text := range contexts {
		id, bad := structure.ParseID[structure.ContextID](text)
		if bad != nil {
			return nil, fmt.Errorf("table lineage_summaries: %w: %w", sqladapter.ErrCorrupt, bad)
		}
		c.Context(id, derived.ContextChange{Summarized: true})
	}
	return ids, err
}

// noteErased records erased content in the database. It does not look for rows that have the content.
func (w *applier) noteErased(ctx context.Context, c *derived.Changes) error {
	ids := slices.Collect(maps.Keys(c.Erased))
	has, err := w.state.Has(ctx, ids)
	for i, has := range has {
		if !has {
			w.batch.need(tables.Erased, ids[i].String())
		}
	}
	return err
}

// resolveThreads adds changed threads to the scopes, and deleted ones to removed.
func (w *applier) resolveThreads(ctx context.Context, c *derived.Changes, touch func(scope) *scope, removed map[string]bool) error {
	touched := make(map[structure.ThreadID]bool) // true if parts may be gone, or if there may be new messages that no context leads to
	for id, change := range c.Threads {
		touched[id] = change.Keeps
		if change.Deleted {
			removed[keyOfThread(id)] = true
		}
	}
	for name := range c.Branches {
		if _, known := touched[name.Thread]; !known {
			touched[name.Thread] = false
		}
		b, err := w.state.Branch(ctx, name.Thread, name.Name)
		if err == nil {
			c.Context(b.Context, derived.ContextChange{}) // the row of the context has the branch
		} else if !errors.Is(err, lineage.ErrNotFound) {
			return err
		}
	}
	for name := range c.Checkpoints {
		touched[name.Thread] = true
	}
	for id, full := range touched {
		there, err := exists(w.state.Thread(ctx, id))
		switch {
		case err != nil:
			return err
		case !there:
			removed[keyOfThread(id)] = true
		default:
			s := touch(scope{key: keyOfThread(id), thread: id})
			s.full = s.full || full
		}
	}
	return nil
}

// resolveContexts adds the changed contexts and the scopes that they were in before. It returns the deleted contexts,
// including those whose id another context has now.
func (w *applier) resolveContexts(ctx context.Context, c *derived.Changes, touch func(scope) *scope, removed map[string]bool) (gone []string, err error) {
	var ids []string
	for id := range c.Contexts {
		ids = append(ids, id.String())
	}
	found, err := lists.ReadList(ctx, w.DB, scanPin, tables.Pins.Select, ids)
	if err != nil {
		return nil, err
	}
	pins := make(map[string]pin, len(found))
	for _, p := range found {
		pins[p.id] = p
	}
	for id, change := range c.Contexts {
		before, pinned := pins[id.String()]
		now, err := w.state.Context(ctx, id)
		deleted := errors.Is(err, lineage.ErrNotFound)
		if deleted {
			err = nil
		}
		if err != nil {
			return nil, err
		}
		if (deleted || change.Deleted) && !w.first { // even if another context has its id
			gone = append(gone, id.String())
		}
		var s *scope
		switch {
		case deleted:
		case !now.Thread.IsZero():
			s = touch(scope{key: keyOfThread(now.Thread), thread: now.Thread})
		case !w.ChatsOnly:
			s = touch(scope{key: keyOfContext(id), context: id})
		}
		if s != nil {
			s.contexts = append(s.contexts, id)
		}
		stays := s != nil && s.key == before.scope
		switch {
		case !pinned:
		case !stays:
			err = w.left(ctx, before.scope, touch, removed)
		case !s.full:
			s.full, err = w.movedBack(ctx, before.at, now.Tip)
		}
		if err != nil {
			return nil, err
		}
	}
	return gone, nil
}

// resolveRuns adds runs that have grown, of threads that keep their messages, and runs with new versions of messages.
// Other runs are found through their contexts.
func (w *applier) resolveRuns(ctx context.Context, runs map[structure.RunID]derived.RunChange, touch func(scope) *scope) error {
	for id, change := range runs {
		renewed := change.Renewed
		run, err := w.state.Run(ctx, id)
		if errors.Is(err, lineage.ErrNotFound) || err == nil && run.Home.Thread.IsZero() {
			continue
		}
		if err != nil {
			return err
		}
		t, err := w.state.Thread(ctx, run.Home.Thread)
		if errors.Is(err, lineage.ErrNotFound) || err == nil && (!t.Keeps && !renewed || t.Home() != run.Home) {
			continue
		}
		if err != nil {
			return err
		}
		s := touch(scope{key: keyOfThread(t.ID), thread: t.ID})
		s.runs, s.renewed = append(s.runs, id), s.renewed || renewed
		s.full = s.full || renewed
	}
	return nil
}

// left records that a context is no longer in its former scope.
func (w *applier) left(ctx context.Context, key string, touch func(scope) *scope, removed map[string]bool) error {
	if removed[key] {
		return nil
	}
	id, err := structure.ParseID[structure.ThreadID](key)
	if err != nil { // a context outside of threads
		removed[key] = true
		return nil
	}
	if _, err = w.state.Thread(ctx, id); errors.Is(err, lineage.ErrNotFound) {
		removed[key] = true
		return nil
	}
	if err == nil {
		touch(scope{key: key, thread: id}).full = true
	}
	return err
}

// movedBack reports whether a tip moved other than forward.
func (w *applier) movedBack(ctx context.Context, from, to structure.SpanRef) (bool, error) {
	forward, err := structure.IsAncestor(from, to, backend.Runs(ctx, w.state))
	if errors.Is(err, lineage.ErrNotFound) {
		return true, nil // the run of from was deleted
	}
	return !forward, err
}

// owners returns the owners whose values may have changed: those with new values, and contexts whose forks were
// deleted. forks are contexts that may be new. removed are scopes to delete.
func (w *applier) owners(ctx context.Context, c *derived.Changes, removed []string) (owners map[structure.Owner]bool, forks []structure.ContextID, err error) {
	owners = make(map[structure.Owner]bool)
	if w.ChatsOnly {
		return owners, nil, nil
	}
	maps.Copy(owners, c.Values)
	gone, err := lists.ReadList(ctx, w.DB, lists.ScanString, pruneSQL.contextsOf, removed)
	if err != nil {
		return nil, nil, err
	}
	for id, change := range c.Contexts {
		if !change.Stated {
			continue
		}
		there, err := exists(w.state.Context(ctx, id))
		if err != nil {
			return nil, nil, err
		}
		if there && !w.first { // otherwise values of its ancestors were written for it too
			forks = append(forks, id)
		} else if !there {
			gone = append(gone, id.String())
		}
	}
	above, err := lists.ReadList(ctx, w.DB, lists.ScanString, contextSQL.ancestors, gone)
	if err != nil {
		return nil, nil, err
	}
	for _, text := range above {
		id, err := parseContext(text)
		if err != nil {
			return nil, nil, err
		}
		owners[contextOwner(id)] = true
	}
	return owners, forks, nil
}
