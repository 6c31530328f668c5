package sqladapter

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

// Projectable is a Dialect whose databases can hold what a Projector brings.
type Projectable interface {
	Dialect
	// ProjectionSchema makes the tables that a projection is kept track of with, and
	// LineageSchema those of content and structure.
	ProjectionSchema() string
	LineageSchema() string
}

var (
	// ErrOtherStore is returned for a database that holds another store's history.
	ErrOtherStore = errors.New("database belongs to another store")
	// ErrNotEmpty is returned for a database that has chats which no projector
	// brought.
	ErrNotEmpty = errors.New("database has chats of its own")
	// ErrAhead is returned for a database that has more of the store's history than
	// the store: the store lost commits, or is a copy that was continued elsewhere.
	ErrAhead = errors.New("database is ahead of the store")
	// ErrOtherTables is returned for a database that was filled with content and
	// structure and is to be followed without, or the other way round.
	ErrOtherTables = errors.New("database was projected with other tables")
	// ErrNotProjected is returned where nothing was projected into a database.
	ErrNotProjected = errors.New("database has no projection")
)

// errOvertaken says that another process projected into the database meanwhile.
var errOvertaken = errors.New("another projector was faster")

// projectionFormat is the version of what is projected. A database with another has
// to be made anew.
const projectionFormat = 5

// Projector brings the history of a store into a database: its threads as chats, and
// content and structure. What it brings depends on the state of the store and on
// nothing else, so a database that has followed the store from its first commit on
// has the same rows as one that was filled at once.
//
// A database holds one store's history and is only written by projectors.
type Projector struct {
	Store *lineage.Store
	DB    *DB
	// ChatsOnly leaves out the tables of content and structure.
	ChatsOnly bool
	// Progress, when not nil, is told after each transaction what was done so far.
	Progress func(ProjectReport)
	// BatchRows is about how many rows a transaction writes. Default 10,000.
	BatchRows int
}

// ProjectReport says what a projector did.
type ProjectReport struct {
	// From and To are the commits that the database had and has.
	From, To lineage.Cursor
	// Threads is how many threads were looked at, and Total how many there are to
	// look at.
	Threads, Total int
	// Added, Changed and Removed count messages.
	Added, Changed, Removed int
	Transactions            int
}

// Run brings the database to where the store is. It can be stopped at any point,
// by force too: what is there is kept, and the next run goes on.
func (p *Projector) Run(ctx context.Context) (ProjectReport, error) {
	var report ProjectReport
	for {
		err := p.pass(ctx, &report)
		if !errors.Is(err, errOvertaken) {
			return report, err
		}
	}
}

// Follow runs whenever the store has changed, until the context ends or the store
// closes. done, when not nil, is told of each run.
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

// pass brings the database to the present state of the store.
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
		limit: p.BatchRows, usages: make(map[string]uint64),
	}
	if w.limit <= 0 {
		w.limit = 10_000
	}
	if report.Transactions == 0 {
		report.From = mark.At
	}
	if head == mark.At {
		report.To = head
		return nil
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
	Format  int
	Lineage bool
	// At is the last commit that is there whole.
	At lineage.Cursor
	// Base is a commit that everything there is at least as new as.
	Base lineage.Cursor
	// Turn counts transactions.
	Turn int64
}

var markSQL = struct {
	read, create, turn, finish, anyChat Statement
}{
	read: `SELECT "store_id", "format", "lineage", "commit_number", "commit_id", "base_number", "base_id", "turn" ` +
		`FROM "lineage_projection" WHERE "id" = 1`,
	create: `INSERT INTO "lineage_projection" ("id", "store_id", "format", "lineage", "commit_number", "commit_id", "base_number", "base_id", "turn") ` +
		`VALUES (1, ?, ?, ?, 0, 0, ?, ?, 0)`,
	turn:    `UPDATE "lineage_projection" SET "turn" = "turn" + 1 WHERE "id" = 1 AND "turn" = ?`,
	finish:  `UPDATE "lineage_projection" SET "commit_number" = ?, "commit_id" = ?, "base_number" = ?, "base_id" = ? WHERE "id" = 1`,
	anyChat: `SELECT COUNT(*) AS "count" FROM "chats"`,
}

func (c *Conn) mark(ctx context.Context) (*watermark, error) {
	columns, err := c.db.dialect.Columns(ctx, c.q, "lineage_projection")
	if err != nil || len(columns) == 0 {
		return nil, err
	}
	m := &watermark{}
	var hasLineage, id, baseID int64
	found, err := c.Get(ctx, markSQL.read, nil, &m.Store, &m.Format, &hasLineage, &m.At.Number, &id, &m.Base.Number, &baseID, &m.Turn)
	if err != nil || !found {
		return nil, err
	}
	m.At.ID, m.Base.ID = uint64(id), uint64(baseID)
	m.Lineage = hasLineage != 0
	return m, nil
}

// begin returns where the database stands, after making it one that the store can be
// projected into.
func (p *Projector) begin(ctx context.Context, head lineage.Cursor) (m *watermark, err error) {
	dialect, ok := p.DB.dialect.(Projectable)
	if !ok {
		return nil, fmt.Errorf("project into %s: %w", p.DB.dialect.Name(), errors.ErrUnsupported)
	}
	err = p.DB.Read(ctx, func(c *Conn) error {
		m, err = c.mark(ctx)
		return err
	})
	if err == nil && m == nil {
		err = p.DB.Write(ctx, func(c *Conn) error {
			if err := dialect.LockSchema(ctx, c.q); err != nil {
				return err
			}
			if m, err = c.mark(ctx); err != nil || m != nil {
				return err
			}
			return p.create(ctx, c, dialect, head)
		})
		if err == nil && m == nil {
			err = p.DB.Read(ctx, func(c *Conn) error {
				m, err = c.mark(ctx)
				return err
			})
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
	case m.Format != projectionFormat:
		return fmt.Errorf("projection of format %d, this program makes %d: %w", m.Format, projectionFormat, ErrOtherTables)
	case m.Lineage == p.ChatsOnly:
		return ErrOtherTables
	}
	return nil
}

// structureTables are those that LineageSchema makes and that somebody else might have.
var structureTables = []*tables.Table{tables.Users, tables.Blocks, tables.Sets, tables.Spans, tables.Contexts, tables.Usages}

// create makes the tables of a projection.
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
	hasLineage := 1
	if p.ChatsOnly {
		hasLineage = 0
	}
	_, err := c.Exec(ctx, markSQL.create, p.Store.ID().String(), projectionFormat, hasLineage, head.Number, int64(head.ID))
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
	// check, when not nil, gets what would be written to a database that has nothing
	// yet. Nothing is written then.
	check func(context.Context, *batch) error
	// usages has of each run in the batch the last span in it that is, or will be, in
	// the database.
	usages map[string]uint64
	// late are contexts whose parents were not there when they were inserted.
	late []lineage.ContextID
}

// bring does what a pass has to.
func (w *projection) bring(ctx context.Context) error {
	todo, err := w.window(ctx)
	if err != nil {
		return err
	}
	w.report.Total = len(todo.scopes)
	for _, scope := range todo.removed {
		if err := w.removeScope(ctx, scope); err != nil {
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
		if err := w.linkContexts(ctx); err != nil {
			return err
		}
		if err := w.sweep(ctx); err != nil {
			return err
		}
	}
	if len(todo.removed) > 0 && !w.ChatsOnly {
		w.batch.before = append(w.batch.before, exec(blockSQL.unusedUsers)) // threads without content had some
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
		if err := w.DB.compact(ctx); err != nil { // then the window is done again
			return err
		}
	}
	w.batch.finish = true
	return w.flush(ctx)
}

// checkMark returns an error if the database has commits that the store does not have: the
// store lost them, or is a copy that was continued elsewhere.
func (p *Projector) checkMark(ctx context.Context, m *watermark) error {
	for _, err := range p.Store.View().Feed(ctx, m.latest()) {
		if errors.Is(err, lineage.ErrDiverged) {
			err = fmt.Errorf("%w: %w", ErrAhead, err)
		}
		return err
	}
	return nil
}

// latest is the last commit of which something may be there.
func (m *watermark) latest() lineage.Cursor {
	if m.Base.Number > m.At.Number {
		return m.Base
	}
	return m.At
}
