package sqladapter

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/lineage-store/lineage/internal/query"
)

// Dialect is what a kind of database does its own way. A dialect has no state and
// is safe for concurrent use.
type Dialect interface {
	// Name is the name of the database: "sqlite", "postgres", "sqlserver".
	Name() string
	// Syntax is how it writes what all of them can do.
	Syntax() Syntax
	// Limits are what it can take.
	Limits() Limits
	// Migrations make the schema, in the order of their versions, which go up by one
	// from 1.
	Migrations() []Migration
	// LockSchema keeps other processes out of LockSchema until the transaction ends.
	LockSchema(ctx context.Context, q Querier) error
	// Kind returns what a name of the schema in use is: "table", another word such as
	// "view", or nothing if there is none.
	Kind(ctx context.Context, q Querier, name string) (string, error)
	// Columns returns the columns of a table of the schema in use, none if there is
	// no such table.
	Columns(ctx context.Context, q Querier, table string) ([]string, error)
	// Classify says what an error of the driver means.
	Classify(err error) Failure
	// Search says how to find candidates for a search.
	Search() SearchSyntax
}

// Querier runs statements: a *sql.DB, *sql.Tx or *sql.Conn.
type Querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Limits are what a database can take. Zero is no limit of its own.
type Limits struct {
	// Parameters is the most of one statement.
	Parameters int
	// Rows is the most of one INSERT … VALUES.
	Rows int
	// IDUnits and IDBytes are the most UTF-16 units and bytes of an id, name or user
	// id.
	IDUnits, IDBytes int
	// Loose says that the database may take different ids for the same, by their case or
	// spaces at their end.
	Loose bool
	// Prepared is how many statements are to be kept prepared. None where the driver
	// does that.
	Prepared int
	// SearchText is the most bytes of a message that its documented full-text index
	// can take.
	SearchText int
}

// Failure classifies an error of a driver.
type Failure int

// The kinds of failure.
const (
	// OtherFailure is anything else, and no error.
	OtherFailure Failure = iota
	// Busy says that another transaction was in the way, or that the database takes no
	// more work now. The transaction is rolled back: trying again may help.
	Busy
	// Lost says that the connection is gone, or could not be made. The transaction is
	// rolled back, unless it was being committed: then that is not known.
	Lost
	// Denied says that the user has no right to do this.
	Denied
	// Duplicate says that a key is taken.
	Duplicate
	// Dangling says that what a row refers to is not there, or that something still
	// refers to a deleted row.
	Dangling
	// Unstorable says that the database cannot keep a value.
	Unstorable
	// Pooled says that a pooler gave the connection with a prepared statement to another
	// client.
	Pooled
)

// Disconnected reports whether an error says that a connection over a network is gone
// or could not be made. It is for dialects.
func Disconnected(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Explain adds to an error of a driver what it means: ErrBusy or ErrDenied.
func Explain(d Dialect, err error) error {
	switch d.Classify(err) {
	case Busy, Lost:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case Denied:
		return fmt.Errorf("%w: %w", ErrDenied, err)
	case Pooled:
		return fmt.Errorf("%w (behind a pooler in transaction mode, put default_query_exec_mode=exec into the connection string)", err)
	}
	return err
}

// A Migration is a step in the making of the schema, run in one transaction.
type Migration struct {
	Version int
	Name    string
	// Documented is run unless all documented tables of chats are there.
	Documented string
	SQL        string
	// Outside, when not empty, is run after the transaction, as some databases
	// demand of some statements, if the query OutsideIf answers 1. It makes what only
	// other programs use: that it cannot be made is no failure.
	Outside, OutsideIf string
}

// SearchSyntax is how a database keeps and finds what a search needs. Each message
// has a row with its terms in lineage_messages and one with its text in
// messages_fts.
type SearchSyntax struct {
	// Numbered says that terms and texts are in tables whose rows are only found by
	// their number.
	Numbered bool
	// Counted says that triggers keep what is known right, whatever other programs
	// write: lineage_chats has how many messages a chat has and how many of them are in
	// lineage_messages, and what is known of a message that was changed is deleted,
	// with the lengths of the chains that go through it. Where they cannot, a row of
	// lineage_messages has the version of the message that it is of (see
	// Syntax.Version), messages are counted, and lengths of chains are not kept.
	Counted bool
	// Unlinked says that rows of lineage_messages stay when other programs delete
	// messages.
	Unlinked bool
	// Known, Texts and Terms insert rows. Where they are numbered: message, chat,
	// depth, row, whether the text has that row too, card; row, message, chat, name,
	// text; row, terms. Otherwise: message, chat, version, terms, card; message, chat,
	// name, text; and nothing.
	Known, Texts, Terms Statement
	// Forget is run after chats were deleted or content was erased: full-text indexes
	// may keep the words of deleted rows until then.
	Forget []Statement
	// Compact is run, outside of a transaction, after content was erased and the rows with
	// it were changed: pages may keep bytes of what was in them until then.
	Compact []Statement
	// Candidates finds the cards of the messages of a chat that may match: a superset
	// of those that do. AllCandidates finds those in any chat, each chat's id and card.
	Candidates, AllCandidates Statement
	// Condition makes the parameters of Candidates, or of AllCandidates where the chat
	// is empty and the condition is one, and how many repetitions they have. most says
	// that most messages are the chat's: not to look for it saves more than it costs.
	Condition func(chatID string, most bool, q Condition) (args []any, n int)
}

// Condition is what every message that a query finds fulfils, as far as an index can tell.
type Condition = query.Condition
