package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lineage-store/lineage/sqladapter"
)

//go:embed schema_documented.sql
var schemaDocumented string

//go:embed schema_1_chats.sql
var schemaChats string

//go:embed schema_2_versions.sql
var schemaVersions string

//go:embed schema_3_origins.sql
var schemaOrigins string

//go:embed schema_4_deleting.sql
var schemaDeleting string

// Dialect is the dialect of Postgres. Identifiers are in lower case, because Postgres folds the
// unquoted names of the documented script.
type Dialect struct {
	// quoted is set if the tables were created with quoted names.
	quoted bool
}

// Name implements sqladapter.Dialect.
func (Dialect) Name() string { return "postgres" }

// Syntax implements sqladapter.Dialect.
func (d Dialect) Syntax() sqladapter.Syntax {
	x := sqladapter.Syntax{
		Parameter: func(n int) string { return fmt.Sprintf("$%d", n) },
		Quotes:    [2]string{`"`, `"`},
		Recursive: "RECURSIVE",
		Version:   `m."xmin"::text`,
		Limit:     func(limit string) string { return "LIMIT " + limit },
		Nth:       func(before string) string { return "LIMIT 1 OFFSET " + before },
		RowValues: sqladapter.AllColumns,
		Epochs:    true,
		Metadata:  metadataSyntax(),
	}
	x.Terms = func(parameter string) string {
		return "array_to_tsvector(string_to_array(btrim(" + parameter + "), ' '))"
	}
	if !d.quoted {
		x.Fold = strings.ToLower
	}
	return x
}

// Limits implements sqladapter.Dialect. An index key has at most 2704 bytes, and the largest index
// has two names. A text vector has less than 1 MiB; a text of short words needs up to three times
// its size.
func (Dialect) Limits() sqladapter.Limits {
	return sqladapter.Limits{Parameters: 65_535, Rows: 1000, IDBytes: 1300, SearchText: 256 << 10}
}

var quoted = regexp.MustCompile(`"[^"\n]+"`)

// Migrations implements sqladapter.Dialect.
func (d Dialect) Migrations() []sqladapter.Migration {
	return []sqladapter.Migration{
		{Version: 1, Name: "chats", Documented: d.script(schemaDocumented), SQL: d.script(schemaChats)},
		{Version: 2, Name: "versions", SQL: d.script(schemaVersions)},
		{Version: 3, Name: "origins", SQL: d.script(schemaOrigins)},
		{Version: 4, Name: "deleting", SQL: d.script(schemaDeleting)},
	}
}

// script returns a script with the table names of this database.
func (d Dialect) script(text string) string {
	if d.quoted {
		return text
	}
	return quoted.ReplaceAllStringFunc(text, strings.ToLower)
}

// schemaLock is the advisory lock for schema changes.
const schemaLock = 0x6c696e65616765

// LockSchema implements sqladapter.Dialect.
func (Dialect) LockSchema(ctx context.Context, q sqladapter.Querier) error {
	_, err := q.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(schemaLock))
	return err
}

// Kind implements sqladapter.Dialect.
func (Dialect) Kind(ctx context.Context, q sqladapter.Querier, name string) (string, error) {
	kinds, err := sqladapter.Strings(ctx, q, `SELECT CASE WHEN c.relkind IN ('r', 'p') THEN 'table' WHEN c.relkind = 'v' THEN 'view' `+
		`WHEN c.relkind = 'm' THEN 'materialized view' WHEN c.relkind = 'f' THEN 'foreign table' WHEN c.relkind = 'S' THEN 'sequence' `+
		`ELSE 'type or index' END FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace `+
		`WHERE n.nspname = current_schema() AND c.relname = $1`, name)
	return strings.Join(kinds, ""), err
}

// Columns implements sqladapter.Dialect. It does not use the information schema, which omits tables
// without privileges.
func (Dialect) Columns(ctx context.Context, q sqladapter.Querier, table string) ([]string, error) {
	return sqladapter.Strings(ctx, q, `SELECT a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid `+
		`JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relname = $1 `+
		`AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, table)
}

// crowded matches messages of connection poolers that are full or whose server is starting. Their
// error code is not specific.
var crowded = regexp.MustCompile(`(?i)max client|too many clients|couldn't connect to compute node|check ?out|timed[- ]out waiting`)

// moving matches messages of a server that distributes tables: rows were just moved elsewhere. cut matches those of such a server and
// of poolers: the connection to the server that has the rows was lost. Their error code is not specific.
var moving = regexp.MustCompile(`(?i)could not find valid entry for shard|shard for the given value does not exist|could not find any healthy placement`)
var cut = regexp.MustCompile(`(?i)EOF detected|connection to database closed|closed the connection unexpectedly|could not (receive data from|send data to) server|connection (not open|reset by peer)|invalid socket`)

// Classify implements sqladapter.Dialect.
func (Dialect) Classify(err error) sqladapter.Failure {
	var e interface {
		error
		SQLState() string
	}
	if !errors.As(err, &e) {
		if sqladapter.Disconnected(err) || errors.Is(err, pgconn.ErrConnClosed) {
			return sqladapter.Lost
		}
		return sqladapter.OtherFailure
	}
	switch code := e.SQLState(); code {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, lock not available
		return sqladapter.Busy
	case "53300", "57P03": // too many connections, cannot connect now
		return sqladapter.Busy
	case "57P01", "57P02", "57P05", "25P03", "40003": // shut down, crashed, idle for too long (twice), completion unknown
		return sqladapter.Lost
	case "42501", "25006", "28000", "28P01": // insufficient privilege, read-only, login refused (twice)
		return sqladapter.Denied
	case "3F000": // invalid schema name
		return sqladapter.NoSchema
	case "23505":
		return sqladapter.Duplicate
	case "23503":
		return sqladapter.Dangling
	case "42P05", "26000": // duplicate or missing prepared statement
		return sqladapter.Pooled
	case "22P05", "22P02", "22021", "54000", "22003": // no such character, no such JSON, bad encoding, too large, out of range
		return sqladapter.Unstorable
	default:
		switch {
		case strings.HasPrefix(code, "08"): // connection exceptions
			return sqladapter.Lost
		case code == "XX000" && (crowded.MatchString(e.Error()) || moving.MatchString(e.Error())):
			return sqladapter.Busy
		case code == "XX000" && cut.MatchString(e.Error()):
			return sqladapter.Lost
		}
	}
	return sqladapter.OtherFailure
}
