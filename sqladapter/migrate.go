package sqladapter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// documented lists the documented tables with their columns. Other programs may have created them.
var documented = []struct {
	table   string
	columns []string
}{
	{"chats", []string{"id", "userId", "title", "metadata", "createdAt", "updatedAt"}},
	{"messages", []string{"id", "chatId", "parentId", "name", "type", "data", "createdAt"}},
	{"branches", []string{"id", "chatId", "name", "headMessageId", "isActive", "createdAt"}},
	{"checkpoints", []string{"id", "chatId", "name", "messageId", "createdAt"}},
	{"messages_fts", []string{"messageId", "chatId", "name", "content"}},
}

var migrationSQL = struct{ versions, record Statement }{
	versions: `SELECT "version" FROM "lineage_migrations" ORDER BY "version"`,
	record:   `INSERT INTO "lineage_migrations" ("version", "name", "appliedAt") VALUES (?, ?, ?)`,
}

// versionTable has the versions of the schema. ownTable is created by the first migration.
const versionTable, ownTable = "lineage_migrations", "lineage_messages"

// CheckTables returns an error if a database cannot be opened as Options.Schema says. It changes
// nothing.
func CheckTables(ctx context.Context, pool *sql.DB, dialect Dialect, o Options) error {
	db := New(Pools{Write: pool, Shared: true}, dialect, o)
	if o.Schema == CreateTables {
		return nil
	}
	return db.patiently(ctx, func() error {
		version, err := db.version(ctx, db.Reader())
		if err != nil {
			return err
		}
		return db.mayOpen(ctx, version)
	})
}

// mayOpen returns an error if Options.Schema does not allow creating the tables or migrating them from a version.
func (db *DB) mayOpen(ctx context.Context, version int) error {
	switch last := len(db.dialect.Migrations()); {
	case version > last:
		return newer(version, last)
	case version == last || version > 0 && db.options.Schema == AdoptTables:
		return nil
	case version > 0:
		return fmt.Errorf("%w: they are of version %d, not %d", ErrNoTables, version, last)
	}
	adopted, err := db.adopt(ctx, db.Reader())
	switch {
	case err != nil:
		return err
	case !adopted:
		return ErrNoTables
	case db.options.Schema == KeepTables:
		return fmt.Errorf("%w: there are only those of another program", ErrNoTables)
	}
	return nil
}

func newer(version, last int) error {
	return fmt.Errorf("schema version %d, at most %d is known: %w", version, last, ErrNewer)
}

// Migrate updates the schema to the latest version, unless Options.Schema forbids it. If the documented tables belong
// to something else, the error is ErrForeign and nothing is changed. Several processes may call it concurrently.
func (db *DB) Migrate(ctx context.Context) error {
	migrations := db.dialect.Migrations()
	version, err := db.version(ctx, db.Reader())
	switch {
	case err == nil && version == len(migrations):
		return nil
	case err != nil && db.dialect.Classify(err) == Lost: // usually a wrong address: do not wait
		return Explain(db.dialect, err)
	}
	if err := CheckTables(ctx, db.pools.Read, db.dialect, db.options); err != nil || db.options.Schema == KeepTables {
		return err
	}
	var applied []Migration
	err = db.Write(ctx, func(c *Conn) error {
		applied = nil
		if err := db.dialect.LockSchema(ctx, c.querier); err != nil {
			return err
		}
		version, err := db.version(ctx, c)
		if err != nil {
			return err
		}
		if version > len(migrations) {
			return newer(version, len(migrations))
		}
		adopted := false
		if version == 0 {
			if adopted, err = db.adopt(ctx, c); err != nil {
				return err
			}
		}
		for _, m := range migrations[version:] {
			if err := db.apply(ctx, c, m, adopted); err != nil {
				return fmt.Errorf("migration %d, %s: %w", m.Version, m.Name, err)
			}
			applied = append(applied, m)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range applied {
		if m.Outside == "" {
			continue
		}
		if answer, err := Strings(ctx, db.pools.Write, m.OutsideIf); err == nil && slices.Equal(answer, []string{"1"}) {
			_, _ = db.pools.Write.ExecContext(ctx, m.Outside)
		}
	}
	return ctx.Err()
}

// version returns the schema version, 0 if there is none.
func (db *DB) version(ctx context.Context, c *Conn) (int, error) {
	columns, err := db.columns(ctx, c, versionTable, []string{"version", "name", "appliedAt"})
	if err != nil || len(columns) == 0 {
		return 0, err
	}
	rows, err := c.Query(ctx, migrationSQL.versions)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	version := 0
	for rows.Next() {
		if err := rows.Scan(&version); err != nil {
			return 0, err
		}
	}
	return version, rows.Err()
}

// columns returns the columns of a table, none if there is no such table. If the name is not a table, or a wanted
// column is missing, the error is ErrForeign.
func (db *DB) columns(ctx context.Context, c *Conn, table string, wanted []string) ([]string, error) {
	kind, err := db.dialect.Kind(ctx, c.querier, table)
	if err != nil || kind == "" {
		return nil, err
	}
	if kind != "table" {
		return nil, &TableError{Table: table, Err: ErrForeign, Detail: "it is a " + kind + ", not a table"}
	}
	columns, err := db.dialect.Columns(ctx, c.querier, table)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, column := range wanted {
		if db.syntax.Fold != nil {
			column = db.syntax.Fold(column)
		}
		if !slices.Contains(columns, column) {
			missing = append(missing, column)
		}
	}
	if len(missing) > 0 {
		return nil, &TableError{Table: table, Err: ErrForeign, Detail: "no column " + strings.Join(missing, ", ")}
	}
	return columns, nil
}

func (db *DB) apply(ctx context.Context, c *Conn, m Migration, adopted bool) error {
	if m.Documented != "" && !adopted {
		if _, err := c.querier.ExecContext(ctx, m.Documented); err != nil {
			return err
		}
	}
	if _, err := c.querier.ExecContext(ctx, m.SQL); err != nil {
		return err
	}
	_, err := c.Exec(ctx, migrationSQL.record, m.Version, m.Name, time.Now().UnixMilli())
	return err
}

// adopt checks existing tables. It refuses those that differ from the documented ones, and reports
// whether all documented ones exist.
func (db *DB) adopt(ctx context.Context, c *Conn) (bool, error) {
	var problems []error
	all := true
	for _, d := range documented {
		columns, err := db.columns(ctx, c, d.table, d.columns)
		if errors.Is(err, ErrForeign) {
			problems = append(problems, err)
		} else if err != nil {
			return false, err
		}
		all = all && len(columns) > 0
	}
	columns, err := db.columns(ctx, c, ownTable, []string{"messageId", "chatId", "card"})
	switch {
	case errors.Is(err, ErrForeign):
		problems = append(problems, err)
	case err != nil:
		return false, err
	case len(columns) > 0:
		problems = append(problems, &TableError{
			Table: versionTable, Err: ErrCorrupt,
			Detail: "it is missing or empty, although " + ownTable + " is there: restore it, or drop everything named lineage_ and open again",
		})
	}
	return all, errors.Join(problems...)
}
