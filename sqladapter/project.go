package sqladapter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
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
	ErrOtherStore = errors.New("database belongs to another store")
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

// errOvertaken means that another process has projected into the database meanwhile. A pass with a newer snapshot
// continues.
var errOvertaken = errors.New("another projector was faster")

// projectionFormat is the version of what is projected. A database with another has
// to be made anew.
const projectionFormat = 8

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
// killed: completed transactions are kept, and the next run continues. So does Run itself when the
// state that it projects expires.
func (p *Projector) Run(ctx context.Context) (ProjectReport, error) {
	var report ProjectReport
	for {
		err := p.pass(ctx, &report)
		if !errors.Is(err, errOvertaken) && !errors.Is(err, lineage.ErrExpired) {
			return report, err
		}
	}
}

// Follow runs a projection whenever the store has changed, until the context ends or the store is
// closed. done, when not nil, is called after each run.
func (p *Projector) Follow(ctx context.Context, done func(ProjectReport)) error {
	for {
		report, err := p.Run(ctx)
		if err != nil {
			return err
		}
		if done != nil {
			done(report)
		}
		if _, err := p.Store.View().Wait(ctx, report.To); err != nil {
			return err
		}
	}
}

// pass brings the database to the current state of the store. The position never goes back: each transaction
// does nothing if another process has written since the position was read.
func (p *Projector) pass(ctx context.Context, report *ProjectReport) error {
	snapshot, err := p.Store.View().Snapshot(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	head, err := snapshot.Head(ctx)
	if err != nil {
		return err
	}
	mark, err := p.begin(ctx, head)
	if err != nil {
		return err
	}
	if err := p.checkMark(ctx, mark); err != nil {
		return err
	}
	w := &projection{
		Projector: p, state: snapshot, mark: mark, head: head, report: report,
		limit: p.BatchRows, usages: make(map[string]uint64), places: make(map[structure.ContextID]placed), whole: !mark.Complete, empty: mark.Turn == 0,
	}
	if w.limit <= 0 {
		w.limit = 10_000
	}
	if report.Transactions == 0 && mark.Complete {
		report.From = mark.At
	}
	if done, err := mark.has(head); done || err != nil {
		report.To = mark.At
		return err
	}
	if err := w.bring(ctx); err != nil {
		return err
	}
	report.To = head
	return nil
}

// watermark is the state of a projection.
type watermark struct {
	Store   string
	Lineage bool
	// At is the last commit that is projected. Until Complete is set, not all of what it found is, but
	// all projected data is at least as new.
	At       lineage.Cursor
	Complete bool
	// Begun is At or, while a pass is incomplete, the newest commit whose state a transaction has written.
	Begun lineage.Cursor
	// Turn counts transactions.
	Turn int64
}

// has reports whether the database has everything of a snapshot. If it has a part of what followed, the error is
// errOvertaken.
func (m *watermark) has(head lineage.Cursor) (bool, error) {
	if !m.settled() && m.Begun.Number > head.Number {
		return false, errOvertaken
	}
	return m.settled() && m.At.Number >= head.Number, nil
}

// settled reports whether the database is as the store was after a commit.
func (m *watermark) settled() bool { return m.Complete && m.Begun == m.At }

var markSQL = struct {
	read, create, turn, finish, anyChat Statement
}{
	read: `SELECT "store_id", "format", "lineage", "commit_number", "commit_id", "complete", "begun_number", "begun_id", "turn" FROM "lineage_projection" WHERE "id" = 1`,
	create: `INSERT INTO "lineage_projection" ("id", "store_id", "format", "lineage", "commit_number", "commit_id", "complete", "begun_number", "begun_id", "turn") ` +
		`VALUES (1, ?, ?, ?, ?, ?, 0, ?, ?, 0)`,
	turn:    `UPDATE "lineage_projection" SET "turn" = "turn" + 1, "begun_number" = ?, "begun_id" = ? WHERE "id" = 1 AND "turn" = ?`,
	finish:  `UPDATE "lineage_projection" SET "commit_number" = ?, "commit_id" = ?, "complete" = 1 WHERE "id" = 1`,
	anyChat: `SELECT COUNT(*) AS "count" FROM "chats"`,
}

func (c *Conn) mark(ctx context.Context) (*watermark, error) {
	columns, err := c.db.dialect.Columns(ctx, c.q, "lineage_projection")
	if err != nil || len(columns) == 0 {
		return nil, err
	}
	m := &watermark{}
	var format, id, begun int64
	if slices.Contains(columns, "begun_id") {
		found, err := c.Get(ctx, markSQL.read, nil, &m.Store, &format, &m.Lineage, &m.At.Number, &id, &m.Complete, &m.Begun.Number, &begun, &m.Turn)
		if err != nil || !found {
			return nil, err
		}
	}
	if format != projectionFormat {
		return nil, fmt.Errorf("projection of another format than %d, which this program makes: %w", projectionFormat, ErrOtherTables)
	}
	m.At.ID, m.Begun.ID = uint64(id), uint64(begun)
	return m, nil
}

// begin returns the state of the projection, after creating its tables if necessary.
func (p *Projector) begin(ctx context.Context, head lineage.Cursor) (m *watermark, err error) {
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
			return p.create(ctx, c, dialect, head)
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
	case m.Store != p.Store.ID().String():
		return fmt.Errorf("store %s, database of store %s: %w", p.Store.ID(), m.Store, ErrOtherStore)
	case m.Lineage == p.ChatsOnly:
		return ErrOtherTables
	}
	return nil
}

// structureTables are the tables of LineageSchema whose names other programs may use.
var structureTables = []*tables.Table{tables.Users, tables.Blocks, tables.Sets, tables.Spans, tables.Contexts, tables.Usages}

// create creates the tables of a projection.
func (p *Projector) create(ctx context.Context, c *Conn, dialect Projectable, head lineage.Cursor) error {
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
	_, err := c.Exec(ctx, markSQL.create, p.Store.ID().String(), projectionFormat, boolean(!p.ChatsOnly), head.Number, int64(head.ID), head.Number, int64(head.ID))
	return err
}

// projection is one pass of a projector.
type projection struct {
	*Projector
	state  backend.Snapshot
	mark   *watermark
	head   lineage.Cursor
	report *ProjectReport

	batch batch
	limit int
	// check, when not nil, gets each batch as for an empty database. Nothing is written then.
	check func(context.Context, *batch) error
	// usages is the last span of each run in the batch that is, or will be, in the database.
	usages map[string]uint64
	// places are the rows of contexts that are known to be in the database or the batch.
	places map[structure.ContextID]placed
	// whole is set if the database may lack anything, empty if it has nothing.
	whole, empty bool
}

// bring performs a pass.
func (w *projection) bring(ctx context.Context) error {
	todo, err := w.window(ctx)
	if err != nil {
		return err
	}
	w.report.Total = len(todo.scopes)
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

// checkMark returns an error if the database has commits that the store does not have: the store
// lost them, or is a copy with a different continuation.
func (p *Projector) checkMark(ctx context.Context, m *watermark) error {
	for _, err := range p.Store.View().Feed(ctx, m.Begun) {
		if errors.Is(err, lineage.ErrDiverged) {
			err = fmt.Errorf("%w: %w", ErrAhead, err)
		}
		return err
	}
	return nil
}
