// Package project copies the history of a store to a SQL database, keeps the copy up to date, and compares
// the two.
package project

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

var (
	// ErrOtherStore is returned for a database with the projection of another store.
	ErrOtherStore = derived.ErrOtherStore
	// ErrNotEmpty is returned for a database with chats that are not from a projector.
	ErrNotEmpty = errors.New("database has chats of its own")
	// ErrAhead is returned for a database with commits that the store does not have: the store lost them, or is a
	// copy that was continued differently.
	ErrAhead = errors.New("database is ahead of the store")
	// ErrNotProjected is returned for a database without a projection.
	ErrNotProjected = errors.New("database has no projection")
	// ErrBehind is returned for a comparison with a database that is not up to date with the store.
	ErrBehind = errors.New("database is behind the store")
)

// Projector copies the history of a store to a database, with threads as chats, and with the content and structure of
// the history. The result depends only on the state of the store: a database that was updated step by step has the
// same rows as one that was filled at once.
//
// A database has the projection of one store. Only projectors may write to it.
type Projector struct {
	Store *lineage.Store
	DB    *sqladapter.DB
	// ChatsOnly omits the tables of content and structure.
	ChatsOnly bool
	// Progress, when not nil, is called after each transaction with the totals so far.
	Progress func(Report)
	// BatchRows is the approximate number of rows per transaction. Default 10,000.
	BatchRows int
}

// Report is the result of a projection.
type Report struct {
	// From and To are the commits of the database before and after.
	From, To lineage.Cursor
	// Threads is the number of threads processed, Total the number to process.
	Threads, Total int
	// Added, Changed and Removed count messages.
	Added, Changed, Removed int
	Transactions            int
	// LeftOut are the first 100 of the LeftOutCount threads, and contexts outside of threads, that the database cannot
	// hold. The rest of the store is there, and they come when the database can hold them.
	LeftOut      []LeftOut
	LeftOutCount int
}

// ahead returns ErrAhead for a database with commits that the store does not have.
func ahead(err error) error {
	if errors.Is(err, lineage.ErrDiverged) {
		return fmt.Errorf("%w: %w", ErrAhead, err)
	}
	return err
}

// check refuses a database without a projection, or with one of other tables.
func (p *Projector) check(m *projected.Mark) error {
	switch {
	case m == nil:
		return ErrNotProjected
	case m.Lineage == p.ChatsOnly:
		return sqladapter.ErrOtherTables
	}
	return nil
}

// structureTables are the tables of LineageSchema whose names other programs may use for their own tables.
var structureTables = []*tables.Table{tables.Users, tables.Blocks, tables.Sets, tables.Spans, tables.Contexts, tables.Usages}

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
