package sqladapter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// Projectable is a Dialect whose databases can hold a projection.
type Projectable interface {
	Dialect
	// ProjectionSchema creates the tables with the state of the projection, LineageSchema those of
	// content and structure.
	ProjectionSchema() string
	LineageSchema() string
}

var (
	// ErrOtherStore is returned for a database with the projection of another store.
	ErrOtherStore = derived.ErrOtherStore
	// ErrNotEmpty is returned for a database with chats that are not from a projector.
	ErrNotEmpty = errors.New("database has chats of its own")
	// ErrAhead is returned for a database with commits that the store does not have: the store lost
	// them, or is a copy with a different continuation.
	ErrAhead = errors.New("database is ahead of the store")
	// ErrOtherTables is returned for a database that was projected with content and structure and
	// is now to be projected without, or the reverse.
	ErrOtherTables = errors.New("database was projected with other tables")
	// ErrNotProjected is returned for a database without a projection.
	ErrNotProjected = errors.New("database has no projection")
)

// projectionFormat is the version of what is projected. A database with another has
// to be made anew.
const projectionFormat = 9

// Projector copies the history of a store to a database: threads as chats, and content and
// structure. The result depends only on the state of the store, so an incrementally updated
// database has the same rows as one filled at once.
//
// A database has the projection of one store and is only written by projectors.
type Projector struct {
	Store *lineage.Store
	DB    *DB
	// ChatsOnly omits the tables of content and structure.
	ChatsOnly bool
	// Progress, when not nil, is called after each transaction with the totals so far.
	Progress func(ProjectReport)
	// BatchRows is the approximate number of rows per transaction. Default 10,000.
	BatchRows int
}

// ProjectReport is the result of a projection.
type ProjectReport struct {
	// From and To are the commits of the database before and after.
	From, To lineage.Cursor
	// Threads is the number of threads processed, Total the number to process.
	Threads, Total int
	// Added, Changed and Removed count messages.
	Added, Changed, Removed int
	Transactions            int
}

// Run brings the database up to date with the store. It can be interrupted at any point, even
// killed: completed transactions are kept, and the next run continues. So does Run itself when
// another projector is faster, or the state that it projects expires.
func (p *Projector) Run(ctx context.Context) (ProjectReport, error) {
	var report ProjectReport
	limit := p.BatchRows
	if limit <= 0 {
		limit = 10_000
	}
	f := derived.Follower[*Conn]{Store: p.Store, Target: &target{p, limit, &report}, Limit: 25 * limit}
	r, err := f.Run(ctx)
	report.From, report.To = r.From, r.To
	return report, ahead(err)
}

// ahead returns ErrAhead for a database with commits that the store does not have.
func ahead(err error) error {
	if errors.Is(err, lineage.ErrDiverged) {
		return fmt.Errorf("%w: %w", ErrAhead, err)
	}
	return err
}

// Follow runs a projection whenever the store has changed, until the context ends or the store is
// closed. done, when not nil, is called after each run.
func (p *Projector) Follow(ctx context.Context, done func(ProjectReport)) error {
	return derived.Follow(ctx, p.Store, func(ctx context.Context) (lineage.Cursor, error) {
		report, err := p.Run(ctx)
		if err == nil && done != nil {
			done(report)
		}
		return report.To, err
	})
}

// target is the database as derived data.
type target struct {
	*Projector
	limit  int
	report *ProjectReport
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
func (t *target) Write(ctx context.Context, do func(*Conn) error) error { return t.DB.Write(ctx, do) }

// Swap implements derived.Target.
func (t *target) Swap(ctx context.Context, c *Conn, was, is derived.Mark) (bool, error) {
	n, err := c.Exec(ctx, markSQL.swap, is.At.Number, int64(is.At.ID), is.Seen.Number, int64(is.Seen.ID), is.Turn, was.Turn)
	return n == 1, err
}

// Apply implements derived.Target.
func (t *target) Apply(ctx context.Context, window *derived.Window[*Conn]) error {
	w := &projection{
		Projector: t.Projector, state: window.State, window: window, report: t.report, limit: t.limit,
		usages: make(map[string]uint64), places: make(map[structure.ContextID]placed),
		first: window.Fresh, empty: window.Fresh && window.From.Number == 0,
	}
	return w.bring(ctx)
}

// watermark is the state of a projection. Lineage is set if it has content and structure.
type watermark struct {
	derived.Mark
	Lineage bool
}

var markSQL = struct {
	read, create, swap, anyChat Statement
}{
	read: `SELECT "store_id", "format", "lineage", "commit_number", "commit_id", "seen_number", "seen_id", "turn" FROM "lineage_projection" WHERE "id" = 1`,
	create: `INSERT INTO "lineage_projection" ("id", "store_id", "format", "lineage", "commit_number", "commit_id", "seen_number", "seen_id", "turn") ` +
		`VALUES (1, ?, ?, ?, 0, 0, 0, 0, 0)`,
	swap: `UPDATE "lineage_projection" SET "commit_number" = ?, "commit_id" = ?, "seen_number" = ?, "seen_id" = ?, "turn" = ? ` +
		`WHERE "id" = 1 AND "turn" = ?`,
	anyChat: `SELECT COUNT(*) AS "count" FROM "chats"`,
}

func (c *Conn) mark(ctx context.Context) (*watermark, error) {
	columns, err := c.db.dialect.Columns(ctx, c.q, "lineage_projection")
	if err != nil || len(columns) == 0 {
		return nil, err
	}
	m := &watermark{}
	var store string
	var format, id, seen int64
	if slices.Contains(columns, "seen_id") {
		found, err := c.Get(ctx, markSQL.read, nil, &store, &format, &m.Lineage, &m.At.Number, &id, &m.Seen.Number, &seen, &m.Turn)
		if err != nil || !found {
			return nil, err
		}
	}
	if format != projectionFormat {
		return nil, fmt.Errorf("projection of another format than %d, which this program makes: %w", projectionFormat, ErrOtherTables)
	}
	m.At.ID, m.Seen.ID = uint64(id), uint64(seen)
	if m.Store, err = structure.ParseID[structure.StoreID](store); err != nil {
		return nil, fmt.Errorf("table lineage_projection: %w: %w", ErrCorrupt, err)
	}
	return m, nil
}

// begin returns the state of the projection, after creating its tables if necessary.
func (p *Projector) begin(ctx context.Context) (m *watermark, err error) {
	dialect, ok := p.DB.dialect.(Projectable)
	if !ok {
		return nil, fmt.Errorf("project into %s: %w", p.DB.dialect.Name(), errors.ErrUnsupported)
	}
	mark := func(c *Conn) (*watermark, error) { return c.mark(ctx) }
	m, err = read(ctx, p.DB, mark)
	if err == nil && m == nil {
		err = p.DB.Write(ctx, func(c *Conn) error {
			if err := dialect.LockSchema(ctx, c.q); err != nil {
				return err
			}
			if m, err := c.mark(ctx); err != nil || m != nil {
				return err
			}
			return p.create(ctx, c, dialect)
		})
		if err == nil {
			m, err = read(ctx, p.DB, mark)
		}
	}
	if err != nil {
		return nil, err
	}
	return m, p.check(m)
}

func (p *Projector) check(m *watermark) error {
	switch {
	case m == nil:
		return ErrNotProjected
	case m.Lineage == p.ChatsOnly:
		return ErrOtherTables
	}
	return nil
}

// structureTables are the tables of LineageSchema whose names other programs may use.
var structureTables = []*tables.Table{tables.Users, tables.Blocks, tables.Sets, tables.Spans, tables.Contexts, tables.Usages}

// create creates the tables of a projection.
func (p *Projector) create(ctx context.Context, c *Conn, dialect Projectable) error {
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
			columns, err := dialect.Columns(ctx, c.q, table.Name)
			if err != nil {
				return err
			}
			if len(columns) > 0 {
				return &TableError{Table: table.Name, Err: ErrForeign, Detail: "a projection makes it"}
			}
		}
		scripts = append(scripts, dialect.LineageSchema())
	}
	for _, script := range scripts {
		if _, err := c.q.ExecContext(ctx, script); err != nil {
			return err
		}
	}
	_, err := c.Exec(ctx, markSQL.create, p.Store.ID().String(), projectionFormat, boolean(!p.ChatsOnly))
	return err
}

// projection applies one window of commits.
type projection struct {
	*Projector
	state  backend.Snapshot
	window *derived.Window[*Conn]
	report *ProjectReport

	batch batch
	limit int
	// check, when not nil, gets each batch as for an empty database. Nothing is written then, and
	// there is no window.
	check func(context.Context, *batch) error
	// usages is the last span of each run in the batch that is, or will be, in the database.
	usages map[string]uint64
	// places are the rows of contexts that are known to be in the database or the batch.
	places map[structure.ContextID]placed
	// first is set in the first pass: all that the database has is of this state. empty is set if it
	// has nothing.
	first, empty bool
}

// bring applies the window.
func (w *projection) bring(ctx context.Context) error {
	todo, err := w.resolve(ctx, w.window.Changes)
	if err != nil {
		return err
	}
	w.report.Total += len(todo.scopes)
	for _, scope := range todo.removed {
		if err := w.removeScope(ctx, scope, false); err != nil {
			return err
		}
	}
	if !w.ChatsOnly && len(todo.gone) > 0 {
		w.batch.before = append(w.batch.before, func(ctx context.Context, c *Conn) error { return w.removeContexts(ctx, c, todo.gone) })
		if err := w.flush(ctx); err != nil { // what is written next asks which contexts have rows
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
		if err := w.grow(ctx, s); err != nil {
			return err
		}
		w.report.Threads++
	}
	if err := w.writeRemnants(ctx, todo.gone); err != nil {
		return err
	}
	if err := w.writeValues(ctx, todo.owners, todo.forks); err != nil {
		return err
	}
	if err := w.writeSummaries(ctx, todo.summarized); err != nil {
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
	if len(todo.removed) > 0 && !w.ChatsOnly {
		w.batch.before = append(w.batch.before, exec(blockSQL.unusedUsers)) // threads without content had users
	}
	if len(todo.removed)+len(todo.rewritten) > 0 {
		for _, s := range w.DB.dialect.Search().Forget {
			w.batch.before = append(w.batch.before, exec(s))
		}
	}
	if len(todo.rewritten) > 0 {
		if err := w.flush(ctx); err != nil {
			return err
		}
		if err := w.DB.compact(ctx); err != nil { // the next pass repeats the window
			return err
		}
	}
	w.batch.finish = true
	return w.flush(ctx)
}
