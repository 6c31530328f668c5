package project

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
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

// pruneChildless deletes the remnants that no context descends from any more, and then those above them.
func pruneChildless(ctx context.Context, c *sqladapter.Conn) error {
	for {
		n, err := c.Exec(ctx, leftOutSQL.childless)
		if err != nil || n == 0 {
			return err
		}
	}
}
