package sqlserver

import (
	"context"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"

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

//go:embed schema_fulltext.sql
var schemaFullText string

// Dialect is the dialect of SQL Server.
type Dialect struct{}

// Name implements sqladapter.Dialect.
func (Dialect) Name() string { return "sqlserver" }

// Syntax implements sqladapter.Dialect.
func (Dialect) Syntax() sqladapter.Syntax {
	return sqladapter.Syntax{
		Parameter: func(n int) string { return fmt.Sprintf("@p%d", n) },
		Quotes:    [2]string{"[", "]"},
		Unlimited: "OPTION (MAXRECURSION 0)",
		Exactly:   "COLLATE Latin1_General_BIN2",
		Loosely:   "COLLATE DATABASE_DEFAULT",
		Key:       func(parameter string) string { return "CAST(" + parameter + " AS NVARCHAR(4000))" },
		Argument:  argument,
		Bytes:     func(b []byte) any { return hex.EncodeToString(b) },
		Terms:     func(parameter string) string { return "CONVERT(VARBINARY(MAX), " + parameter + ", 2)" },
		Version:   version,
		Limit:     func(limit string) string { return "OFFSET 0 ROWS FETCH NEXT " + limit + " ROWS ONLY" },
		Nth:       func(before string) string { return "OFFSET " + before + " ROWS FETCH NEXT 1 ROWS ONLY" },
		Metadata:  sqladapter.MetadataSyntax{Condition: hasMetadata, Args: metadataArgs},
	}
}

// argument declares a text without its length. Otherwise each length would need a plan of its own.
func argument(v any) any {
	if s, ok := v.(string); ok {
		return mssql.NVarCharMax(s)
	}
	return v
}

// Limits implements sqladapter.Dialect. A statement has at most 2100 parameters, including some of
// the protocol.
func (Dialect) Limits() sqladapter.Limits {
	return sqladapter.Limits{Parameters: 2000, Rows: 1000, IDUnits: 255, Loose: true}
}

// Migrations implements sqladapter.Dialect.
func (Dialect) Migrations() []sqladapter.Migration {
	return []sqladapter.Migration{
		{Version: 1, Name: "chats", Documented: schemaDocumented, SQL: schemaChats, Outside: schemaFullText, OutsideIf: hasFullText},
		{Version: 2, Name: "versions", SQL: schemaVersions},
		{Version: 3, Name: "origins", SQL: schemaOrigins},
		{Version: 4, Name: "deleting", SQL: schemaDeleting},
	}
}

// version is a hash of the indexed columns of a message. It shows that a message was overwritten since it was indexed. A trigger
// could delete the index rows instead, but a table with triggers refuses OUTPUT without INTO, which other programs may use.
const version = `CONVERT(NVARCHAR(64), HASHBYTES('SHA2_256', CONCAT(m.[createdAt], N'|', ` +
	`DATALENGTH(m.[chatId]), N'|', m.[chatId] COLLATE Latin1_General_BIN2, DATALENGTH(m.[name]), N'|', m.[name] COLLATE Latin1_General_BIN2, ` +
	`m.[data] COLLATE Latin1_General_BIN2)), 2)`

const (
	lockSchema = `DECLARE @granted INT; ` +
		`EXEC @granted = sp_getapplock @Resource = 'lineage_schema', @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = 60000; ` +
		`IF @granted < 0 THROW 50000, 'the lock of the schema was not granted', 1;`
	hasFullText  = `SELECT CAST(SERVERPROPERTY('IsFullTextInstalled') AS NVARCHAR(10)) AS [installed]`
	kindOf       = `SELECT CASE type WHEN 'U' THEN 'table' WHEN 'V' THEN 'view' ELSE 'another object' END AS [kind] FROM sys.objects WHERE object_id = OBJECT_ID(@p1)`
	tableColumns = `SELECT name FROM sys.columns WHERE object_id = OBJECT_ID(@p1) ORDER BY column_id`
)

// LockSchema implements sqladapter.Dialect.
func (Dialect) LockSchema(ctx context.Context, q sqladapter.Querier) error {
	_, err := q.ExecContext(ctx, lockSchema)
	return err
}

// Kind implements sqladapter.Dialect.
func (Dialect) Kind(ctx context.Context, q sqladapter.Querier, name string) (string, error) {
	kinds, err := sqladapter.Strings(ctx, q, kindOf, name)
	return strings.Join(kinds, ""), err
}

// Columns implements sqladapter.Dialect.
func (Dialect) Columns(ctx context.Context, q sqladapter.Querier, table string) ([]string, error) {
	return sqladapter.Strings(ctx, q, tableColumns, table)
}

// Classify implements sqladapter.Dialect.
func (Dialect) Classify(err error) sqladapter.Failure {
	var e mssql.Error
	if errors.As(err, &e) {
		switch e.Number {
		case 1205, 1222, 3960: // deadlock, lock timeout, snapshot conflict
			return sqladapter.Busy
		case 1204, 8645, 8651, 10928, 10929, 10936, 40501, 49918, 49919, 49920: // no locks, memory or workers left now
			return sqladapter.Busy
		case 41301, 41302, 41305, 41325, 41839: // conflicts of tables in memory
			return sqladapter.Busy
		case 596, 615, 926, 4060, 4221, 6005, 6006, 40143, 40166, 40197, 40540, 40613, 42108, 42109: // the database stops, starts or moves
			return sqladapter.Lost
		case 20, 64, 121, 233, 10053, 10054, 10060: // the network
			return sqladapter.Lost
		case 229, 230, 262, 297, 300, 916, 1088, 3906, 15247, 18456: // permission, read-only, login
			return sqladapter.Denied
		case 2601, 2627:
			return sqladapter.Duplicate
		case 547:
			return sqladapter.Dangling
		case 2628, 8152, 8115: // text too long, number out of range
			return sqladapter.Unstorable
		}
	}
	var stream mssql.StreamError
	var server mssql.ServerError
	if errors.As(err, &stream) || errors.As(err, &server) || sqladapter.Disconnected(err) {
		return sqladapter.Lost
	}
	return sqladapter.OtherFailure
}
