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

// Dialect has the specifics of a kind of database. It has no state and is safe for concurrent use.
type Dialect interface {
	// Name is the name of the database: "sqlite", "postgres", "sqlserver".
	Name() string
	// Syntax is the syntax of features that all databases have.
	Syntax() Syntax
	// Limits are the limits of the database.
	Limits() Limits
	// Migrations create the schema, in order of their versions 1, 2, ….
	Migrations() []Migration
	// LockSchema excludes other calls of LockSchema until the end of the transaction.
	LockSchema(ctx context.Context, q Querier) error
	// Kind returns the kind of object with a name in the current schema: "table", another word such
	// as "view", or "" if there is none.
	Kind(ctx context.Context, q Querier, name string) (string, error)
	// Columns returns the columns of a table in the current schema, none if there is no such table.
	Columns(ctx context.Context, q Querier, table string) ([]string, error)
	// Classify returns the meaning of a driver's error.
	Classify(err error) Failure
	// Search describes how to find candidates of a search.
	Search() SearchSyntax
}

// Querier runs statements: a *sql.DB, *sql.Tx or *sql.Conn.
type Querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Limits are the limits of a database. Zero means unlimited.
type Limits struct {
	// Parameters is the maximum per statement.
	Parameters int
	// Rows is the maximum per INSERT … VALUES.
	Rows int
	// IDUnits and IDBytes are the maximum UTF-16 units and bytes of an id, name or user id.
	IDUnits, IDBytes int
	// Loose is set if the database may treat different ids as equal, by case or trailing spaces.
	Loose bool
	// Prepared is the number of statements to keep prepared, 0 if the driver does that.
	Prepared int
	// SearchText is the maximum number of bytes of a message in the documented full-text index.
	SearchText int
}

// Failure classifies a driver's error.
type Failure int

// The kinds of failure.
const (
	// OtherFailure is any other error, or none.
	OtherFailure Failure = iota
	// Busy means that another transaction was in the way, or that the database is overloaded. The
	// transaction is rolled back; a retry may succeed.
	Busy
	// Lost means that the connection is lost or could not be made. The transaction is rolled back,
	// unless it was being committed: then the outcome is unknown.
	Lost
	// Denied means that the user lacks a right.
	Denied
	// Duplicate means that a key is taken.
	Duplicate
	// Dangling means that a referenced row does not exist, or that a deleted row is still
	// referenced.
	Dangling
	// Unstorable means that the database cannot store a value.
	Unstorable
	// Pooled means that a pooler gave the connection with a prepared statement to another client.
	Pooled
	// NoSchema means that the schema for the tables does not exist.
	NoSchema
)

// Disconnected reports whether an error means that a network connection is lost or could not be
// made. It is for dialects.
func Disconnected(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Explain wraps a driver's error with its meaning, such as ErrBusy or ErrDenied. An error that has one
// is returned as it is.
func Explain(d Dialect, err error) error {
	for _, known := range []error{ErrBusy, ErrDenied, ErrNoSchema} {
		if errors.Is(err, known) {
			return err
		}
	}
	switch d.Classify(err) {
	case Busy, Lost:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case Denied:
		return fmt.Errorf("%w: %w", ErrDenied, err)
	case NoSchema:
		return fmt.Errorf("%w: %w", ErrNoSchema, err)
	case Pooled:
		return fmt.Errorf("%w (behind a pooler in transaction mode, put default_query_exec_mode=exec into the connection string)", err)
	}
	return err
}

// Migration is a step of the schema, run in one transaction.
type Migration struct {
	Version int
	Name    string
	// Documented is run unless all documented tables of chats exist.
	Documented string
	SQL        string
	// Outside, when not empty, is run after the transaction, as some statements require, if the
	// query OutsideIf returns 1. Only other programs use what it creates, so its failure is
	// ignored.
	Outside, OutsideIf string
}

// SearchSyntax describes how a database stores and finds the data for searches. Each message has a
// row with its terms in lineage_messages and one with its text in messages_fts.
type SearchSyntax struct {
	// Numbered is set if terms and texts are in tables whose rows are only found by number.
	Numbered bool
	// Counted is set if triggers maintain index rows, whatever other programs write: lineage_chats
	// has the number of messages of a chat and of those in lineage_messages, and index rows of
	// changed messages are deleted, with the lengths of chains through them. Otherwise a row of
	// lineage_messages has the version of its message (see Syntax.Version), messages are counted,
	// and lengths of chains are not stored.
	Counted bool
	// Unlinked is set if rows of lineage_messages remain when other programs delete messages.
	Unlinked bool
	// Known, Texts and Terms insert rows. If numbered: message, chat, depth, row, whether the text
	// has the same row, card; row, message, chat, name, text; row, terms. Otherwise: message, chat,
	// version, terms, card; message, chat, name, text; Terms is empty.
	Known, Texts, Terms Statement
	// Forget is run after chats were deleted or content was erased, because full-text indexes may
	// keep words of deleted rows.
	Forget []Statement
	// Compact is run, outside of a transaction, after rows with erased content were changed,
	// because pages may keep the old bytes.
	Compact []Statement
	// Candidates finds the cards of a superset of the matching messages of a chat. AllCandidates
	// finds those of all chats, each with the chat's id.
	Candidates, AllCandidates Statement
	// Condition returns the parameters of Candidates, or of AllCandidates if chatID is empty, and
	// the number of repetitions. most is set if most messages belong to the chat, so that a
	// condition on the chat costs more than it saves.
	Condition func(chatID string, most bool, q Condition) (args []any, n int)
}

// Condition is a necessary condition for matches of a query that an index can check.
type Condition = query.Condition
