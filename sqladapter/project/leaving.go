package project

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// holding calls add, which adds rows of a scope to the batch. In a careful pass, and for a scope that is left out, they
// are a batch of their own. If the database refuses that, the scope is left out, and holding returns false.
func (w *applier) holding(ctx context.Context, s *scope, add func() error) (bool, error) {
	if !w.careful && !w.isOut(s.key) {
		return true, add()
	}
	if err := w.flush(ctx); err != nil {
		return false, err
	}
	err := add()
	if err == nil {
		err = w.flush(ctx)
	}
	if !w.isRefusal(err) {
		return err == nil, err
	}
	w.batch = batch{}
	w.forget()
	return false, w.leaveOut(ctx, s, err)
}

// forget forgets what is known of the rows in the database and the batch.
func (w *applier) forget() {
	clear(w.usages)
	clear(w.places)
	w.empty = false
}

// leaveOut leaves a scope out. The batch has none of its rows.
func (w *applier) leaveOut(ctx context.Context, s *scope, cause error) error {
	known, err := lists.ReadList(ctx, w.DB, lists.ScanString, tables.Scopes.Known, []string{s.key})
	if err != nil {
		return err
	}
	if len(known) > 0 {
		if err := w.flush(ctx); err != nil { // rows of the batch may need the same spans
			return err
		}
		if err := w.removeScope(ctx, s.key, false); err != nil {
			return err
		}
		w.forget()
	}
	reason := escaped(cause.Error())
	if w.DB.Dialect().Classify(cause) == sqladapter.Duplicate {
		reason = takenReason + reason
	}
	w.leftOut[s.key], w.leaving = reason, true
	w.batch.before = append(w.batch.before, exec(pruneSQL.removePins, s.key)) // see removeScope
	w.batch.want(tables.LeftOut, nil, []any{s.key, reason})
	if isOfOwner(s.key) {
		return nil
	}
	if w.ChatsOnly {
		return w.flushFull(ctx)
	}
	if err := w.writeOmitted(ctx, s); err != nil {
		return err
	}
	if err := w.inheritAgain(ctx, s); err != nil {
		return err
	}
	return w.flushFull(ctx)
}

// errNamesake is the reason for leaving out a thread whose id another thread has as its source id: that one is the chat.
var errNamesake = errors.New("another thread has its id as source id")

// leaveNamesakeOut leaves out the thread whose id is the source id of a thread.
func (w *applier) leaveNamesakeOut(ctx context.Context, thread *structure.Thread) error {
	if thread == nil || thread.SourceID == "" {
		return nil
	}
	id, err := structure.ParseID[structure.ThreadID](thread.SourceID)
	if err != nil || id.String() != thread.SourceID || w.isOut(keyOfThread(id)) {
		return nil
	}
	t, err := w.state.Thread(ctx, id)
	if ok, err := exists(t, err); !ok || t.SourceID != "" {
		return err
	}
	return w.leaveOut(ctx, &scope{key: keyOfThread(id), thread: id}, errNamesake)
}

// escaped returns a text that every database can store.
func escaped(s string) string {
	quoted := strconv.QuoteToASCII(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// writeOmitted writes the contexts of a scope that have rows, as remnants.
func (w *applier) writeOmitted(ctx context.Context, s *scope) error {
	all, err := w.contextsOf(ctx, s)
	if err != nil {
		return err
	}
	ids := make([]structure.ContextID, len(all))
	for i := range all {
		ids[i] = all[i].ID
	}
	w.empty = false // the batch may have rows of remnants
	if err := w.readPlaces(ctx, ids); err != nil {
		return err
	}
	var rows [][]any
	for i := range all {
		c := &all[i]
		if _, there := w.places[c.ID]; !there {
			continue
		}
		a, err := backend.AncestorOf(ctx, w.state, c.ID)
		if err != nil {
			return err
		}
		row, err := w.remnantRow(ctx, &a.Remnant)
		if err == nil {
			rows, err = w.place(ctx, rows, c.ID, c.Parent, row)
		}
		if err != nil {
			return err
		}
	}
	w.batch.want(tables.Contexts, nil, rows...)
	return nil
}

// contextsOf returns the contexts of a scope.
func (w *applier) contextsOf(ctx context.Context, s *scope) ([]backend.Context, error) {
	if s.thread.IsZero() {
		c, err := w.state.Context(ctx, s.context)
		if ok, err := exists(c, err); !ok {
			return nil, err
		}
		return []backend.Context{c}, nil
	}
	var all []backend.Context
	for c, err := range w.state.Contexts(ctx, s.thread, structure.ContextID{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// admit removes a scope from those that are left out.
func (w *applier) admit(ctx context.Context, s *scope) error {
	if !w.isOut(s.key) {
		return nil
	}
	delete(w.leftOut, s.key)
	w.leaving = true
	w.batch.before = append(w.batch.before, func(ctx context.Context, c *sqladapter.Conn) error {
		return lists.ExecList(ctx, c, tables.LeftOut.Remove, []string{s.key})
	})
	return w.inheritAgain(ctx, s)
}

// inheritAgain notes the owners of the values that the contexts of a scope inherit, so that these are written again: which
// earlier values are needed depends on the scopes that are left out.
func (w *applier) inheritAgain(ctx context.Context, s *scope) error {
	if w.ChatsOnly || isOfOwner(s.key) {
		return nil
	}
	all, err := w.contextsOf(ctx, s)
	if err != nil {
		return err
	}
	for i := range all {
		for a, err := range backend.Ancestors(ctx, w.state, all[i].ID) {
			if err != nil {
				return err
			}
			w.valueOwners[contextOwner(a.ID)] = true
		}
	}
	return nil
}

// retry touches the scopes that are left out, if changes may allow the database to hold them although they did not
// change. Those that are gone are no longer left out.
func (w *applier) retry(ctx context.Context, c *derived.Changes, touch func(scope) *scope) error {
	if len(w.leftOut) == 0 {
		return nil
	}
	all, keys, err := w.toRetry(ctx, c)
	if err != nil {
		return err
	}
	for _, key := range keys {
		s := scopeOf(key)
		there, err := w.inStore(ctx, &s)
		if err != nil {
			return err
		}
		if there {
			touch(s).full = true
		} else if err := w.admit(ctx, &s); err != nil {
			return err
		}
	}
	if !all {
		return nil
	}
	owners, err := ownersOut(ctx, w.state, w.leftOut)
	for _, o := range owners {
		w.valueOwners[o] = true
	}
	return err
}

// toRetry returns the keys of the scopes to retry. all is set if they are all that are left out.
func (w *applier) toRetry(ctx context.Context, c *derived.Changes) (all bool, keys []string, err error) {
	all = len(c.Erased) > 0
	for _, change := range c.Threads {
		all = all || change.Deleted
	}
	moved := len(c.Branches)+len(c.Checkpoints) > 0 // ids may be free
	for _, change := range c.Contexts {
		all = all || change.Deleted
		moved = moved || change.Moved
	}
	changed := make(map[string]bool) // scopes with values that changed
	for owner := range c.Values {
		key, err := w.keyOfValues(ctx, owner)
		if err != nil {
			return false, nil, err
		}
		changed[key] = true
	}
	for key, reason := range w.leftOut {
		if !isOfOwner(key) && (all || changed[key] || moved && strings.HasPrefix(reason, takenReason)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return all, keys, nil
}

// inStore reports whether the store has the thread of a scope, or the context without a thread.
func (w *applier) inStore(ctx context.Context, s *scope) (bool, error) {
	if !s.thread.IsZero() {
		return exists(w.state.Thread(ctx, s.thread))
	}
	c, err := w.state.Context(ctx, s.context)
	there, err := exists(c, err)
	return there && c.Thread.IsZero(), err
}

// check refuses a thread with ids or names that the database cannot hold.
func (v *visibility) check(ctx context.Context) error {
	if v.record == nil {
		return nil
	}
	if v.record.SourceID == "" {
		if taken, err := exists(v.w.state.Thread(ctx, write.SourceThread(v.thread.String()))); err != nil || taken {
			return cmp.Or(err, refuse(errNamesake))
		}
	}
	db := v.w.DB
	err := cmp.Or(chatrows.CheckID(db, chat.SubjectChat, chat.IDOfThread(v.record)), chatrows.CheckUser(db, projected.Clean(v.record.UserID)))
	if err != nil {
		return refuse(err)
	}
	for b, err := range v.w.state.Branches(ctx, v.thread, "", "") {
		if err != nil {
			return err
		}
		if err := chatrows.CheckID(db, chat.SubjectBranch, cmp.Or(b.SourceID, b.Context.String()), projected.Clean(b.Name)); err != nil {
			return refuse(err)
		}
	}
	for k, err := range v.w.state.Checkpoints(ctx, v.thread, "") {
		if err != nil {
			return err
		}
		id, err := v.checkpointID(ctx, k)
		if err != nil {
			return err
		}
		if err := chatrows.CheckID(db, chat.SubjectCheckpoint, id, projected.Clean(k.Name)); err != nil {
			return refuse(err)
		}
	}
	return nil
}
