package project

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
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

// A scope that the database cannot hold is left out: the database has none of its rows, but a row of lineage_left_out.
// A context of it from which others descend has the row of a remnant. The scope is tried again when it or one of its
// values changes, when something was deleted or erased and, if another scope has one of its ids, when branches,
// checkpoints or tips change.
//
// The values of a user, an application or the store are left out in the same way, all those of an owner.
//
// Ids and names are checked before anything of a scope is written. What else the database refuses ends the pass. Then
// a careful pass writes each scope apart, so that the one with the refused row is known.

var leftOutSQL = struct {
	all, childless sqladapter.Statement
}{
	all: `SELECT "scope", "reason" FROM "lineage_left_out" ORDER BY "scope"`,
	childless: `DELETE FROM "contexts" WHERE "remnant" = 1 AND NOT EXISTS (` +
		`SELECT 1 FROM "contexts" f WHERE f."parent_context_id" = "contexts"."id")`,
}

// LeftOut is a thread, a context outside of threads, or the values of an owner, that the database cannot hold.
type LeftOut struct {
	// Thread is the thread, SourceID its source id. Context is the context if there is no thread. Owner is the user, the
	// application or the store if there is neither.
	Thread   structure.ThreadID
	SourceID string
	Context  structure.ContextID
	Owner    structure.Owner
	Reason   string
}

// String returns the subject with its id.
func (l *LeftOut) String() string {
	switch {
	case !l.Thread.IsZero():
		return fmt.Sprintf("thread %q", chatrows.Shortened(cmp.Or(l.SourceID, l.Thread.String())))
	case !l.Context.IsZero():
		return "context " + l.Context.String()
	case l.Owner.Scope == structure.StoreScope:
		return "values of the store"
	}
	return fmt.Sprintf("values of %v %q", l.Owner.Scope, chatrows.Shortened(l.Owner.Name))
}

// maxLeftOut limits Report.LeftOut.
const maxLeftOut = 100

// refusal is the error for what a database cannot hold.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// refuse returns the refusal of a check, nil if there is no error.
func refuse(err error) error {
	if err == nil {
		return nil
	}
	return &refusal{err}
}

// isRefusal reports whether the database cannot hold what was to be written. A key that is taken is one that the
// database cannot distinguish from that of another scope.
func (p *Projector) isRefusal(err error) bool {
	var r *refusal
	if errors.As(err, &r) {
		return true
	}
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	failure := p.DB.Dialect().Classify(err)
	return failure == sqladapter.Unstorable || failure == sqladapter.Duplicate
}

// readLeftOut reads the scopes that are left out, with the reasons.
func (p *Projector) readLeftOut(ctx context.Context) (map[string]string, error) {
	return lists.Read(ctx, p.DB, func(c *sqladapter.Conn) (map[string]string, error) {
		found := make(map[string]string)
		_, err := lists.Collect(ctx, c, func(rows *sqladapter.Rows) (_ struct{}, err error) {
			var key, reason string
			err = rows.Scan(&key, &reason)
			found[key] = reason
			return struct{}{}, err
		}, leftOutSQL.all)
		return found, err
	})
}

// reportLeftOut adds the scopes that are left out to the report.
func (p *Projector) reportLeftOut(ctx context.Context, r *Report) error {
	found, err := p.readLeftOut(ctx)
	if err != nil {
		return err
	}
	owners, err := ownersOut(ctx, p.Store.View(), found)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		s := scopeOf(key)
		l := LeftOut{Thread: s.thread, Context: s.context, Owner: owners[key], Reason: found[key]}
		if isOfOwner(key) && l.Owner == (structure.Owner{}) {
			continue // its values were deleted since
		}
		if !s.thread.IsZero() {
			t, err := p.Store.View().Thread(ctx, s.thread)
			if errors.Is(err, lineage.ErrNotFound) {
				continue // deleted since
			}
			if err != nil {
				return err
			}
			l.SourceID = t.SourceID
		}
		if r.LeftOutCount++; len(r.LeftOut) < maxLeftOut {
			r.LeftOut = append(r.LeftOut, l)
		}
	}
	return nil
}

// ownerKey precedes the hash of an owner in a key.
const ownerKey = "values/"

// keyOfOwner returns the key for the values of a user, an application or the store.
func keyOfOwner(o structure.Owner) string {
	sum := sha256.Sum256([]byte(o.Scope.String() + "\x00" + o.Name))
	return ownerKey + hex.EncodeToString(sum[:16])
}

func isOfOwner(key string) bool { return strings.HasPrefix(key, ownerKey) }

// ownersOut returns the owners whose values are left out, by key. Owners that have no values any more are not found.
func ownersOut(ctx context.Context, from backend.Reader, leftOut map[string]string) (map[string]structure.Owner, error) {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(leftOut)), isOfOwner) {
		return nil, nil
	}
	found := make(map[string]structure.Owner)
	for o, err := range namedOwners(ctx, from) {
		if err != nil {
			return nil, err
		}
		if key := keyOfOwner(o); leftOut[key] != "" {
			found[key] = o
		}
	}
	return found, nil
}

// namedOwners yields the store, and the applications and users that have values.
func namedOwners(ctx context.Context, from backend.Reader) iter.Seq2[structure.Owner, error] {
	return func(yield func(structure.Owner, error) bool) {
		if !yield(structure.Owner{Scope: structure.StoreScope}, nil) {
			return
		}
		for _, scope := range [...]structure.Scope{structure.ApplicationScope, structure.UserScope} {
			for name, err := range from.ValueOwners(ctx, scope, "") {
				if !yield(structure.Owner{Scope: scope, Name: name}, err) || err != nil {
					return
				}
			}
		}
	}
}

// scopeOf returns the scope with a key.
func scopeOf(key string) scope {
	s := scope{key: key}
	if id, outside := strings.CutPrefix(key, contextKey); outside {
		s.context, _ = structure.ParseID[structure.ContextID](id)
	} else {
		s.thread, _ = structure.ParseID[structure.ThreadID](key)
	}
	return s
}

// scopeOfContext returns the scope that a context is in.
func scopeOfContext(c *backend.Context) scope {
	if c.Thread.IsZero() {
		return scope{key: keyOfContext(c.ID), context: c.ID}
	}
	return scope{key: keyOfThread(c.Thread), thread: c.Thread}
}

// omitsContext reports whether the scope of a context is left out.
func (w *applier) omitsContext(c *backend.Context) bool {
	return len(w.leftOut) > 0 && w.isOut(scopeOfContext(c).key)
}

// omits reports whether the scope of a context is left out. The context may be gone.
func (w *applier) omits(ctx context.Context, id structure.ContextID) (bool, error) {
	if len(w.leftOut) == 0 {
		return false, nil
	}
	c, err := w.state.Context(ctx, id)
	if errors.Is(err, lineage.ErrNotFound) {
		return false, nil
	}
	return err == nil && w.omitsContext(&c), err
}

func (w *applier) isOut(key string) bool {
	_, out := w.leftOut[key]
	return out
}

// takenReason begins the reason of a scope with an id that another scope has.
const takenReason = "another thread has one of its ids: "

// retry touches the scopes that are left out, if changes may allow the database to hold them although they did not
// change. Those that are gone are no longer left out.
func (w *applier) retry(ctx context.Context, c *derived.Changes, touch func(scope) *scope) error {
	if len(w.leftOut) == 0 {
		return nil
	}
	all := len(c.Erased) > 0
	for _, change := range c.Threads {
		all = all || change.Deleted
	}
	moved := len(c.Branches)+len(c.Checkpoints) > 0 // ids may be free
	for _, change := range c.Contexts {
		all = all || change.Deleted
		moved = moved || change.Moved
	}
	again := make(map[string]bool)
	for owner := range c.Values {
		key, err := w.keyOfValues(ctx, owner)
		if err != nil {
			return err
		}
		again[key] = true
	}
	for key, reason := range w.leftOut {
		if all || moved && strings.HasPrefix(reason, takenReason) {
			again[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.leftOut)) {
		if !again[key] || isOfOwner(key) {
			continue
		}
		s := scopeOf(key)
		var there bool
		var err error
		if s.thread.IsZero() {
			var found backend.Context
			found, err = w.state.Context(ctx, s.context)
			there, err = exists(found, err)
			there = there && found.Thread.IsZero()
		} else {
			there, err = exists(w.state.Thread(ctx, s.thread))
		}
		if err != nil {
			return err
		}
		if !there {
			if err := w.admit(ctx, &s); err != nil {
				return err
			}
		} else {
			touch(s).full = true
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

// keyOfValues returns the key of the scope of an owner, or its own.
func (w *applier) keyOfValues(ctx context.Context, o structure.Owner) (string, error) {
	switch o.Scope {
	case structure.ThreadScope:
		return keyOfThread(o.Thread), nil
	case structure.ContextScope:
		c, err := w.state.Context(ctx, o.Context)
		if ok, err := exists(c, err); !ok {
			return "", err
		}
		return scopeOfContext(&c).key, nil
	}
	return keyOfOwner(o), nil
}

// check refuses a thread with ids or names that the database cannot hold.
func (v *view) check(ctx context.Context) error {
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

// growOrLeaveOut grows a scope, or leaves it out if the database cannot hold it.
func (w *applier) growOrLeaveOut(ctx context.Context, s *scope) error {
	v, err := w.open(ctx, s)
	if err == nil {
		err = v.check(ctx)
	}
	if w.isRefusal(err) {
		return w.leaveOut(ctx, s, err)
	}
	if err == nil {
		err = w.leaveNamesakeOut(ctx, v.record)
	}
	if err != nil {
		return err
	}
	held, err := w.holding(ctx, s, func() error { return w.grow(ctx, s) })
	if err != nil || !held {
		return err
	}
	w.report.Threads++
	return w.admit(ctx, s)
}

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

// pruneChildless deletes the remnants that no context descends from any more, and then those above them.
func pruneChildless(ctx context.Context, c *sqladapter.Conn) error {
	for {
		n, err := c.Exec(ctx, leftOutSQL.childless)
		if err != nil || n == 0 {
			return err
		}
	}
}
