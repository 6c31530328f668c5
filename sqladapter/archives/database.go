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

	_ "modernc.org/sqlite"

	"github.com/lineage-store/lineage/lineage/archive"
)

// database is an open SQLite file.
type database struct {
	*sql.DB
	// tables has the columns of each table, by table name.
	tables map[string][]string
	size   int64 // in bytes
	// counts is the number of rows of each table. visits is, by query, the number of rows that are read for lack of an index.
	counts, visits map[string]int64
}

// openDatabase opens the file of an input. done closes it.
func openDatabase(ctx context.Context, in *archive.Input) (db *database, done func(), err error) {
	path, remove, err := in.LocalFile(ctx)
	if err != nil {
		return nil, nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		remove()
		return nil, nil, err
	}
	// If there is a write-ahead log next to the file, it is read too; neither is written.
	mode := "mode=ro&immutable=1"
	if fileSize(path+"-wal") >= 0 {
		mode = "mode=ro"
	} else if in.DiskPath() != "" && strings.HasSuffix(path, ".vscdb") && !hasLog(in.Head().Bytes) { // Cursor writes to it without a log
		mode = "mode=ro"
	}
	return openFile(ctx, path, mode, remove)
}

// hasLog reports whether a SQLite file that begins with some bytes is written with a write-ahead log. Without one beside it nothing has it
// open, and SQLite would create the log to read it.
func hasLog(head []byte) bool {
	const writeVersion, logged = 18, 2
	return len(head) > writeVersion && head[writeVersion] == logged
}

// openFile opens a file. done closes it, and then calls remove, as openFile does if it fails.
func openFile(ctx context.Context, path, mode string, remove func()) (db *database, done func(), err error) {
	size := fileSize(path) + max(fileSize(path+"-wal"), 0)
	handle, err := sql.Open("sqlite", uriOf(path, mode+"&_pragma=query_only(1)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)"))
	if err != nil {
		remove()
		return nil, nil, err
	}
	handle.SetMaxOpenConns(4)
	db = &database{DB: handle, size: size}
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

// uriOf returns the name of a file for the driver, with parameters.
func uriOf(path, parameters string) string {
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + parameters
}

// fileSize returns the size of a file, or -1 if it does not exist.
func fileSize(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return -1
	}
	return info.Size()
}

// readTables lists the tables that may be read: ordinary tables only.
func (db *database) readTables(ctx context.Context) error {
	db.tables, db.counts, db.visits = make(map[string][]string), make(map[string]int64), make(map[string]int64)
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
		if column != sizeColumn {
			db.tables[table] = append(db.tables[table], column)
		}
	}
	for table, columns := range db.tables {
		if len(columns) > maxColumns {
			delete(db.tables, table)
		}
	}
	return rows.Err()
}

// maxColumns is the maximum number of columns of a table that is read. Each query names them.
const maxColumns = 256

// visited returns the number of rows that a query visits without an index, whatever its arguments.
func (db *database) visited(ctx context.Context, query string, args []any) (int64, error) {
	if n, known := db.visits[query]; known {
		return n, nil
	}
	tables, err := db.scanned(ctx, query, args)
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for _, table := range tables {
		n, known := db.counts[table]
		if !known {
			if err := db.QueryRowContext(ctx, `SELECT count(*) FROM `+quoted(table)).Scan(&n); err != nil {
				return 0, err
			}
			db.counts[table] = n
		}
		total += n
	}
	db.visits[query] = total
	return total, nil
}

// scanned returns the tables that a query reads as a whole. An index that is made for the query reads its table, too,
// and one that skips columns may visit all of its entries.
func (db *database) scanned(ctx context.Context, query string, args []any) (tables []string, err error) {
	rows, err := db.QueryContext(ctx, `EXPLAIN QUERY PLAN `+query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int64
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return nil, err
		}
		words := strings.Fields(detail)
		if len(words) < 2 || words[0] != "SCAN" && !strings.Contains(detail, " AUTOMATIC ") && !strings.Contains(detail, "(ANY(") {
			continue
		}
		if _, ok := db.tables[words[1]]; ok {
			tables = append(tables, words[1])
		}
	}
	return tables, rows.Err()
}

// has reports whether there is a table with the given columns.
func (db *database) has(table string, columns ...string) bool {
	known, ok := db.tables[table]
	for _, c := range columns {
		ok = ok && slices.Contains(known, c)
	}
	return ok
}

// row is a row by column name. Values are nil, int64, float64, string or []byte.
type row map[string]any

// rows calls visit for each row of a query, which selects columns of list. An error of visit stops
// it.
func (db *database) rows(ctx context.Context, limit int64, query string, args []any, visit func(row) error) error {
	rows, err := db.QueryContext(ctx, query, append([]any{limit}, args...)...)
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

// shortValue is the size in bytes up to which values of an oversized row are read, so that reports can name the row.
const shortValue = 256

// sizeColumn is the column with the size of a row. No table has a column of this name.
const sizeColumn = "@size"

// list returns the wanted columns that a table has as SQL, and their size in bytes as sizeColumn. Values of a row whose
// size exceeds ?1 are not read, except for short ones.
func (db *database) list(table string, wanted ...string) string {
	var names, values, sizes []string
	for _, c := range wanted {
		if db.has(table, c) {
			name := quoted(table) + "." + quoted(c)
			names = append(names, quoted(c))
			values = append(values, name)
			sizes = append(sizes, "coalesce(octet_length("+name+"), 0)")
		}
	}
	size := strings.Join(sizes, " + ")
	var sql strings.Builder
	for i, name := range names {
		fmt.Fprintf(&sql, "CASE WHEN %s <= %d OR %s <= ?1 THEN %s END AS %s, ", sizes[i], shortValue, size, values[i], name)
	}
	return sql.String() + size + " AS " + quoted(sizeColumn)
}

// quoted returns a name for SQL.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// text returns a value as text, empty if it is not one.
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

// bytes returns a value as bytes, nil for NULL.
func (r row) bytes(column string) []byte {
	switch v := r[column].(type) {
	case string:
		return []byte(v)
	case []byte:
		return v
	}
	return nil
}

// mentions reports whether a head is that of a SQLite file with all of these tables: their CREATE
// statements are on the first pages.
func mentions(h archive.Head, tables ...string) bool {
	if !h.IsSQLite() {
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

// containsWord reports whether b contains a word that is not followed by a letter.
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
