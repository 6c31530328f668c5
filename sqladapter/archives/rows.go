package archives

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/scratch"
	"github.com/lineage-store/lineage/lineage/archive"
)

// openRows returns a temporary database with the rows of an input, one on a line as rowJSON writes them. A later row replaces an
// earlier one with its id. done removes the database.
func openRows(ctx context.Context, in *archive.Input) (db *database, done func(), err error) {
	dir, err := scratch.New()
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir.Path, "rows.db")
	if err := writeRows(ctx, in, path); err != nil {
		dir.Remove()
		return nil, nil, err
	}
	db, done, err = openFile(ctx, path, "mode=ro&immutable=1", func() { dir.Remove() })
	return db, done, err
}

// writeRows creates a database with the rows of an input.
func writeRows(ctx context.Context, in *archive.Input, path string) error {
	handle, err := sql.Open("sqlite", uriOf(path, "_pragma=journal_mode(off)&_pragma=synchronous(off)"))
	if err != nil {
		return err
	}
	defer handle.Close()
	tx, err := handle.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	tables := make(map[string][]string)
	for line, err := range in.Lines(ctx) {
		if err != nil {
			return err
		}
		if err := insertRow(ctx, tx, tables, line.Raw); err != nil {
			return archive.Damaged(line.At, err)
		}
	}
	return tx.Commit()
}

// insertRow adds a row. tables has the columns of the tables that were created.
func insertRow(ctx context.Context, tx *sql.Tx, tables map[string][]string, line []byte) error {
	table, cells := rawjson.Str(rawjson.Get(line, "table")), rawjson.Get(line, "row")
	if table == "" || !rawjson.IsObject(cells) || rawjson.Check(line) != nil {
		return fmt.Errorf("%w: it is no row of a table", archive.ErrMalformed)
	}
	var columns, names []string
	var values []any
	for m := range rawjson.Members(cells) {
		value, err := cellOf(m.Value)
		if err != nil {
			return err
		}
		columns, names, values = append(columns, m.Key), append(names, quoted(m.Key)), append(values, value)
	}
	if len(columns) > maxColumns {
		return fmt.Errorf("%w: %d columns", archive.ErrMalformed, len(columns))
	}
	if err := createColumns(ctx, tx, tables, table, columns); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO `+quoted(table)+` (`+strings.Join(names, ", ")+`) VALUES (?`+strings.Repeat(", ?", len(names)-1)+`)`, values...)
	return err
}

// createColumns creates what a table lacks of columns. Rows are looked up by their ids, and by the ids that they refer to.
func createColumns(ctx context.Context, tx *sql.Tx, tables map[string][]string, table string, columns []string) error {
	var statements []string
	if _, known := tables[table]; !known {
		if !slices.Contains(columns, "id") {
			return fmt.Errorf("%w: a row without an id", archive.ErrMalformed)
		}
		statements = append(statements, `CREATE TABLE `+quoted(table)+` ("id" PRIMARY KEY)`)
		tables[table] = []string{"id"}
	}
	for _, column := range columns {
		if slices.Contains(tables[table], column) {
			continue
		}
		tables[table] = append(tables[table], column)
		statements = append(statements, `ALTER TABLE `+quoted(table)+` ADD COLUMN `+quoted(column))
		if strings.HasSuffix(column, "_id") {
			statements = append(statements, `CREATE INDEX `+quoted(table+"."+column)+` ON `+quoted(table)+` (`+quoted(column)+`)`)
		}
	}
	if len(tables[table]) > maxColumns {
		return fmt.Errorf("%w: %d columns", archive.ErrMalformed, len(tables[table]))
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// cellOf returns the value that appendCell has written.
func cellOf(raw []byte) (any, error) {
	switch {
	case rawjson.IsNull(raw):
		return nil, nil
	case rawjson.IsString(raw):
		return rawjson.Str(raw), nil
	case bytes.HasPrefix(raw, []byte(`{"$`)):
		for m := range rawjson.Members(raw) {
			switch m.Key {
			case "$json":
				return m.Value, nil
			case "$real":
				return strconv.ParseFloat(rawjson.Str(m.Value), 64)
			case "$blob", "$text":
				value, err := base64.StdEncoding.DecodeString(rawjson.Str(m.Value))
				if err == nil && m.Key == "$text" {
					return string(value), nil
				}
				return value, err
			}
			break
		}
		return nil, fmt.Errorf("%w: a value of an unknown kind", archive.ErrMalformed)
	case rawjson.IsObject(raw), rawjson.IsArray(raw):
		return string(raw), nil
	case bytes.ContainsAny(raw, ".eE"):
		return strconv.ParseFloat(string(raw), 64)
	}
	return strconv.ParseInt(string(raw), 10, 64)
}
