package project

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

// keysOf returns the keys of rows.
func keysOf(rows [][]any) []string {
	list := make([]string, len(rows))
	for i, row := range rows {
		list[i] = row[0].(string)
	}
	return list
}

// scanRow returns a function that scans the rows of a table.
func scanRow(t *tables.Table) func(*sqladapter.Rows) ([]any, error) {
	return func(rows *sqladapter.Rows) ([]any, error) {
		row, into := make([]any, len(t.Columns)), make([]any, len(t.Columns))
		texts := make(map[int]*json.RawMessage)
		for i := range row {
			if into[i] = &row[i]; isJSON(t.Name, t.Columns[i]) {
				texts[i] = new(json.RawMessage)
				into[i] = texts[i]
			}
		}
		err := rows.Scan(into...)
		for i, text := range texts {
			row[i] = chatrows.OptionalJSON(*text)
		}
		return row, err
	}
}

// byKey maps rows of a database by their keys.
func byKey(rows [][]any) map[string][]any {
	rowOf := make(map[string][]any, len(rows))
	for _, row := range rows {
		rowOf[plain(row[0])] = row
	}
	return rowOf
}

// differences returns the columns in which a row differs from the row in the database. Columns missing there are not
// compared, nor are spans that a collection may have deleted.
func differences(t *tables.Table, want, got []any) (columns []int) {
	for i := range want {
		if t.Columns[i] != "seen_span_id" && !sameValue(want[i], got[i], isJSON(t.Name, t.Columns[i])) {
			columns = append(columns, i)
		}
	}
	return columns
}

// isJSON reports whether the database may change the spelling of JSON in a column.
func isJSON(table, column string) bool {
	return table == "messages" && column == "data" || table == "chats" && column == "metadata"
}

// plain returns a value as text that does not depend on the types of the driver.
func plain(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case json.RawMessage:
		return string(v)
	case string:
		return v
	case bool:
		if v {
			return "1"
		}
		return "0"
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return fmt.Sprint(v)
}

// sameValue compares a parameter with the value read back. A nil slice is written as null. An empty body may be read
// as a nil slice, which is not null.
func sameValue(want, got any, isJSON bool) bool {
	if b, ok := want.([]byte); ok && b == nil {
		want = nil
	}
	if want == nil || got == nil {
		return want == got
	}
	a, b := plain(want), plain(got)
	if a == b || !isJSON {
		return a == b
	}
	return projected.SameJSON(json.RawMessage(a), json.RawMessage(b))
}

// insertMissing inserts the rows of keys that a table does not have.
func insertMissing(ctx context.Context, c *sqladapter.Conn, t *tables.Table, ids []string, row func(id string) []any) error {
	has, err := lists.CollectSet(ctx, c, t.Known, ids)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, id := range ids {
		if !has[id] {
			rows = append(rows, row(id))
		}
	}
	return lists.Insert(ctx, c, t.Insert, rows)
}
