package project

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/structure"
)

var markSQL = struct {
	create, swap, anyChat sqladapter.Statement
}{
	create: `INSERT INTO "lineage_projection" ("id", "store_id", "format", "lineage", "commit_number", "commit_id", "seen_number", "seen_id", "version") ` +
		`VALUES (1, ?, ?, ?, 0, 0, 0, 0, 0)`,
	swap: `UPDATE "lineage_projection" SET "commit_number" = ?, "commit_id" = ?, "seen_number" = ?, "seen_id" = ?, "version" = ? ` +
		`WHERE "id" = 1 AND "version" = ?`,
	anyChat: `SELECT COUNT(*) AS "count" FROM "chats"`,
}

// Run brings the database up to date with the store. It can be interrupted at any point, even killed: completed
// transactions are kept, and the next run continues. Run itself also continues when another projector was faster, or
// when the state that it projects expires.
func (p *Projector) Run(ctx context.Context) (Report, error) {
	var report Report
	limit := p.BatchRows
	if limit <= 0 {
		limit = 10_000
	}
	t := &target{Projector: p, limit: limit, report: &report}
	f := derived.Follower[*sqladapter.Conn]{Store: p.Store, Target: t, Limit: 25 * limit}
	r, err := f.Run(ctx)
	report.From, report.To = r.From, r.To
	if p.isRefusal(err) {
		t.careful, report.Threads, report.Total = true, 0, 0
		r, err = f.Run(ctx)
		report.To = r.To
	}
	if err == nil {
		err = p.reportLeftOut(ctx, &report)
	}
	return report, ahead(err)
}

// Follow runs a projection each time the store has changed, until the context ends or the store is closed. done, when
// not nil, is called after each run.
func (p *Projector) Follow(ctx context.Context, done func(Report)) error {
	return derived.Follow(ctx, p.Store, func(ctx context.Context) (lineage.Cursor, error) {
		report, err := p.Run(ctx)
		if err == nil && done != nil {
			done(report)
		}
		return report.To, err
	})
}

// target is the database, as a target of derived data.
type target struct {
	*Projector
	limit  int
	report *Report
	// careful is set after the database has refused a row.
	careful bool
}

// Mark implements derived.Target.
func (t *target) Mark(ctx context.Context) (derived.Mark, error) {
	m, err := t.begin(ctx)
	if err != nil {
		return derived.Mark{}, err
	}
	return m.Mark, nil
}

// Write implements derived.Target.
func (t *target) Write(ctx context.Context, do func(*sqladapter.Conn) error) error {
	return chatrows.Write(ctx, t.DB, do)
}

// Swap implements derived.Target.
func (t *target) Swap(ctx context.Context, c *sqladapter.Conn, was, now derived.Mark) (bool, error) {
	n, err := c.Exec(ctx, markSQL.swap, now.At.Number, int64(now.At.ID), now.Seen.Number, int64(now.Seen.ID), now.Version, was.Version)
	return n == 1, err
}

// Apply implements derived.Target.
func (t *target) Apply(ctx context.Context, window *derived.Window[*sqladapter.Conn]) error {
	w := &applier{
		Projector: t.Projector, state: window.State, window: window, report: t.report, limit: t.limit,
		usages: make(map[string]uint64), places: make(map[structure.ContextID]placed),
		first: window.Fresh, empty: window.Fresh && window.From.Number == 0, careful: t.careful,
		valueOwners: make(map[structure.Owner]bool),
	}
	var err error
	if w.leftOut, err = t.readLeftOut(ctx); err != nil {
		return err
	}
	return w.apply(ctx)
}

// begin returns the state of the projection, after creating its tables if necessary.
func (p *Projector) begin(ctx context.Context) (m *projected.Mark, err error) {
	dialect, ok := p.DB.Dialect().(sqladapter.Projectable)
	if !ok {
		return nil, fmt.Errorf("project into %s: %w", p.DB.Dialect().Name(), errors.ErrUnsupported)
	}
	mark := func(c *sqladapter.Conn) (*projected.Mark, error) { return projected.ReadMark(ctx, c) }
	m, err = lists.Read(ctx, p.DB, mark)
	if err == nil && m == nil {
		err = p.DB.Write(ctx, func(c *sqladapter.Conn) error {
			if err := dialect.LockSchema(ctx, c.Querier()); err != nil {
				return err
			}
			if m, err := projected.ReadMark(ctx, c); err != nil || m != nil {
				return err
			}
			return p.create(ctx, c, dialect)
		})
		if err == nil {
			m, err = lists.Read(ctx, p.DB, mark)
		}
	}
	if err != nil {
		return nil, err
	}
	return m, p.check(m)
}

// create creates the tables of a projection.
func (p *Projector) create(ctx context.Context, c *sqladapter.Conn, dialect sqladapter.Projectable) error {
	var chats int64
	if _, err := c.Get(ctx, markSQL.anyChat, nil, &chats); err != nil {
		return err
	}
	if chats > 0 {
		return fmt.Errorf("%d of them: %w", chats, ErrNotEmpty)
	}
	scripts := []string{dialect.ProjectionSchema()}
	if !p.ChatsOnly {
		for _, table := range structureTables {
			columns, err := dialect.Columns(ctx, c.Querier(), table.Name)
			if err != nil {
				return err
			}
			if len(columns) > 0 {
				return &sqladapter.TableError{Table: table.Name, Err: sqladapter.ErrForeign, Detail: "a projection makes it"}
			}
		}
		scripts = append(scripts, dialect.LineageSchema())
	}
	for _, script := range scripts {
		if _, err := c.Querier().ExecContext(ctx, script); err != nil {
			return err
		}
	}
	_, err := c.Exec(ctx, markSQL.create, p.Store.ID().String(), projected.Format, projected.Boolean(!p.ChatsOnly))
	return err
}

// apply applies the window.
func (w *applier) apply(ctx context.Context) error {
	todo, err := w.resolve(ctx, w.window.Changes)
	if err != nil {
		return err
	}
	maps.Copy(w.valueOwners, todo.owners)
	w.report.Total += len(todo.scopes)
	for _, scope := range todo.removed {
		if err := w.removeScope(ctx, scope, false); err != nil {
			return err
		}
	}
	if !w.ChatsOnly && len(todo.gone) > 0 {
		w.batch.before = append(w.batch.before, func(ctx context.Context, c *sqladapter.Conn) error { return w.removeContexts(ctx, c, todo.gone) })
		if err := w.flush(ctx); err != nil { // the next steps query which contexts have rows
			return err
		}
	}
	for _, s := range todo.scopes {
		if s.full && !s.fresh {
			if err := w.shrink(ctx, s); err != nil {
				return err
			}
		}
	}
	for _, s := range todo.scopes {
		if err := w.growOrLeaveOut(ctx, s); err != nil {
			return err
		}
	}
	if err := w.writeRemnants(ctx, todo.gone); err != nil {
		return err
	}
	if err := w.writeSummaries(ctx, todo.summarized); err != nil {
		return err
	}
	if err := w.writeValues(ctx, todo.forks); err != nil {
		return err
	}
	if err := w.rewrite(ctx, todo.rewritten); err != nil {
		return err
	}
	if !w.ChatsOnly {
		if err := w.sweep(ctx); err != nil {
			return err
		}
	}
	return w.finish(ctx, todo)
}

// finish clears what removed and rewritten rows leave behind, and ends the window.
func (w *applier) finish(ctx context.Context, todo *work) error {
	removed := w.leaving || len(todo.removed) > 0
	if (removed || len(w.leftOut) > 0) && !w.ChatsOnly {
		if err := w.flush(ctx); err != nil {
			return err
		}
		w.batch.before = append(w.batch.before, pruneChildless)
	}
	if removed && !w.ChatsOnly {
		w.batch.before = append(w.batch.before, exec(sweepSQL.unusedUsers)) // threads without content had users
	}
	if removed || len(todo.rewritten) > 0 {
		for _, s := range w.DB.Dialect().Search().Forget {
			w.batch.before = append(w.batch.before, exec(s))
		}
	}
	if len(todo.rewritten) > 0 {
		if err := w.flush(ctx); err != nil {
			return err
		}
		if err := w.DB.Compact(ctx); err != nil { // the next pass repeats the window
			return err
		}
	}
	w.batch.finish = true
	return w.flush(ctx)
}
