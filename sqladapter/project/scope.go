package project

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

var scopeSQL = struct {
	reach, reachOf sqladapter.Statement
}{
	reach:   `SELECT "run_id", "last_seq", "own" FROM "lineage_reach" WHERE "scope" = ?`,
	reachOf: `SELECT "run_id", "last_seq", "own" FROM "lineage_reach" WHERE "scope" = ? AND "run_id" = ?`,
}

// scope is a thread, or a context outside of threads, that a pass processes.
type scope struct {
	// key is its id in the database.
	key     string
	thread  structure.ThreadID
	context structure.ContextID // when there is no thread
	// fresh is set if the database has nothing of it.
	fresh bool
	// full is set if parts of it may be gone, renewed if messages of it have other ids now, because
	// there are later versions of them.
	full, renewed bool
	// contexts are the changed contexts, runs the thread's runs that have grown.
	contexts []structure.ContextID
	runs     []structure.RunID
}

const contextKey = "context/"

// keyOfThread and keyOfContext return the key of a scope.
func keyOfThread(id structure.ThreadID) string { return id.String() }

func keyOfContext(id structure.ContextID) string { return contextKey + id.String() }

// extent is the part of a run that the database has in a scope. own is how many of its messages,
// from the first on, have their own ids.
type extent struct {
	run       structure.RunID
	last, own uint64
}

func scanExtent(rows *sqladapter.Rows) (extent, error) {
	var run string
	var e extent
	if err := rows.Scan(&run, &e.last, &e.own); err != nil {
		return e, err
	}
	var err error
	if e.run, err = structure.ParseID[structure.RunID](run); err != nil {
		err = fmt.Errorf("table lineage_reach: %w: %w", sqladapter.ErrCorrupt, err)
	}
	return e, err
}

// line is the part of a run that a scope sees.
type line struct {
	run  structure.RunInfo
	last uint64
	// has is the part in the database.
	has extent
	// counted is set if own is known: how many messages, from the first on, have their own ids.
	counted bool
	own     uint64
}

// view is what a scope sees.
type view struct {
	w *projection
	*scope
	record *structure.Thread
	reader *chat.ThreadReader
	lines  map[structure.RunID]*line
	// written are the contexts to write.
	written []backend.Context
}

// open reads the thread of a scope.
func (w *projection) open(ctx context.Context, s *scope) (*view, error) {
	v := &view{w: w, scope: s, lines: make(map[structure.RunID]*line)}
	if s.thread.IsZero() {
		return v, nil
	}
	var err error
	if v.record, err = w.state.Thread(ctx, s.thread); err != nil {
		return nil, err
	}
	v.reader = chat.NewThreadReader(w.Store, w.state, v.record, v.owned)
	return v, nil
}

// chatID is null for a scope that is not a thread.
func (v *view) chatID() any {
	if v.record == nil {
		return nil
	}
	return chat.IDOfThread(v.record)
}

// metadata returns the thread's metadata. Some databases keep only its JSON value in chats.
func (v *view) metadata() any {
	if v.record == nil {
		return nil
	}
	return projected.BytesText(v.record.Metadata)
}

// look determines what the scope sees: everything, or what changed contexts see in addition.
func (v *view) look(ctx context.Context) error {
	if v.full && !v.fresh {
		has, err := lists.ReadAll(ctx, v.w.DB, scanExtent, scopeSQL.reach, v.key)
		if err != nil {
			return err
		}
		for _, e := range has {
			v.lines[e.run] = &line{has: e}
		}
	}
	for c, err := range v.contextsToLookAt(ctx) {
		if err != nil {
			return err
		}
		v.written = append(v.written, c)
		if v.full && v.record != nil {
			continue
		}
		if err := v.follow(ctx, c.Tip); err != nil {
			return err
		}
	}
	if v.full && v.record != nil {
		reach, err := backend.ReachOf(ctx, v.w.state, v.record)
		if err != nil {
			return err
		}
		for id, e := range reach {
			l := v.lines[id]
			if l == nil {
				l = &line{}
				v.lines[id] = l
			}
			l.run, l.last = e.Run, e.Last
		}
	} else {
		for _, run := range v.runs {
			last, err := v.w.state.Last(ctx, run)
			if err == nil {
				err = v.follow(ctx, last)
			}
			if err != nil {
				return err
			}
		}
	}
	slices.SortFunc(v.written, byAge)
	return nil
}

func (v *view) contextsToLookAt(ctx context.Context) func(yield func(backend.Context, error) bool) {
	if v.record != nil && v.full {
		return v.w.state.Contexts(ctx, v.thread, structure.ContextID{})
	}
	ids := v.scope.contexts
	if v.record == nil {
		ids = []structure.ContextID{v.context}
	}
	return func(yield func(backend.Context, error) bool) {
		for _, id := range ids {
			c, err := v.w.state.Context(ctx, id)
			if errors.Is(err, lineage.ErrNotFound) {
				continue
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// follow adds the history that ends at a span, up to the known part.
func (v *view) follow(ctx context.Context, at structure.SpanRef) error {
	runs := backend.Runs(ctx, v.w.state)
	for !at.IsZero() {
		l := v.lines[at.Run]
		if l != nil && l.run.ID == at.Run {
			l.last = max(l.last, at.Seq)
			return nil
		}
		run, err := runs(at.Run)
		if err != nil {
			return err
		}
		if l == nil {
			l = &line{}
			v.lines[at.Run] = l
			if !v.full {
				if err := v.recall(ctx, at.Run, l); err != nil {
					return err
				}
			}
		}
		l.run, l.last = run, at.Seq
		if !v.full && l.has.last > 0 {
			l.last = max(l.last, l.has.last)
			return nil // the rest is in the database
		}
		at = run.Parent
	}
	return nil
}

// recall reads the part of a run in the database.
func (v *view) recall(ctx context.Context, run structure.RunID, l *line) error {
	return v.w.DB.Read(ctx, func(c *sqladapter.Conn) error {
		has, err := lists.First(ctx, c, scanExtent, scopeSQL.reachOf, v.key, run.String())
		if has != nil {
			l.has = *has
		}
		return err
	})
}

// put adds rows that the scope should have. With an owner, see batch.want, they are all rows of it.
func (v *view) put(t *tables.Table, owner []any, rows ...[]any) {
	v.w.put(v.fresh, t, owner, rows...)
}
