package archives

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/lineage-store/lineage/lineage/archive"
)

// magic begins every SQLite file.
var magic = []byte("SQLite format 3\x00")

// database is a SQLite file that is read.
type database struct {
	*sql.DB
	// tables has the columns of each table, by name.
	tables map[string][]string
}

// openDatabase opens the file that an input is. done closes it.
func openDatabase(ctx context.Context, in *archive.Input) (db *database, done func(), err error) {
	path, remove, err := in.LocalFile(ctx)
	if err != nil {
		return nil, nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		remove()
		return nil, nil, err
	}
	// A file whose log lies beside it is read with it; nothing is written to either.
	mode := "mode=ro&immutable=1"
	if _, err := os.Stat(path + "-wal"); err == nil {
		mode = "mode=ro"
	}
	name := "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + mode + "&_pragma=query_only(1)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)"
	handle, err := sql.Open("sqlite", name)
	if err != nil {
		remove()
		return nil, nil, err
	}
	handle.SetMaxOpenConns(4)
	db = &database{DB: handle}
	done = func() {
		_ = handle.Close()
		remove()
	}
	if err := db.readTables(ctx); err != nil {
		done()
		return nil, nil, err
	}
	return db, done, nil
}

// readTables lists what may be read: ordinary tables.
func (db *database) readTables(ctx context.Context) error {
	db.tables = make(map[string][]string)
	rows, err := db.QueryContext(ctx, `SELECT m.name, c.name FROM sqlite_schema m, pragma_table_xinfo(m.name) c
		WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' AND c.hidden = 0 ORDER BY m.name, c.cid LIMIT 20000`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			return err
		}
		db.tables[table] = append(db.tables[table], column)
	}
	return rows.Err()
}

// has reports whether there is a table with the given columns.
func (db *database) has(table string, columns ...string) bool {
	known, ok := db.tables[table]
	for _, c := range columns {
		ok = ok && slices.Contains(known, c)
	}
	return ok
}

// row is a row by the names of its columns. Values are nil, int64, float64, bool,
// string, []byte or time.Time.
type row map[string]any

// each calls visit with the rows that a query returns. An error of visit ends it.
func (db *database) each(ctx context.Context, query string, args []any, visit func(row) error) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]any, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		r := make(row, len(columns))
		for i, c := range columns {
			r[c] = values[i]
			values[i] = nil
		}
		if err := visit(r); err != nil {
			return err
		}
	}
	return rows.Err()
}

// list selects those of the wanted columns that a table has, quoted.
func (db *database) list(table string, wanted ...string) string {
	var quoted []string
	for _, c := range wanted {
		if slices.Contains(db.tables[table], c) {
			quoted = append(quoted, `"`+c+`"`)
		}
	}
	return strings.Join(quoted, ", ")
}

// text returns a value as text, empty for one that is none.
func (r row) text(column string) string {
	switch v := r[column].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case int64, float64:
		return fmt.Sprint(v)
	}
	return ""
}

// bytes returns a value's bytes, nil for one that has none.
func (r row) bytes(column string) []byte {
	switch v := r[column].(type) {
	case string:
		return []byte(v)
	case []byte:
		return v
	}
	return nil
}

// mentions reports whether a head is of a SQLite file that has tables of all
// these names: the statements that made them are on its first page, or near it.
func mentions(h archive.Head, tables ...string) bool {
	if !bytes.HasPrefix(h.Bytes, magic) {
		return false
	}
	for _, t := range tables {
		found := false
		for _, quoted := range []string{t, `"` + t + `"`, "[" + t + "]", "`" + t + "`"} {
			for _, exists := range []string{"CREATE TABLE ", "CREATE TABLE IF NOT EXISTS "} {
				found = found || containsWord(h.Bytes, exists+quoted)
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// containsWord reports whether b has a word that no letter goes on after.
func containsWord(b []byte, word string) bool {
	for {
		i := bytes.Index(b, []byte(word))
		if i < 0 {
			return false
		}
		b = b[i+len(word):]
		if len(b) == 0 || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", rune(b[0])) {
			return true
		}
	}
}
