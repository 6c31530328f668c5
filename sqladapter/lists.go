package sqladapter

import (
	"context"
	"iter"
	"math/bits"
)

// Strings returns the values of a query with one column. It is for dialects.
func Strings(ctx context.Context, q Querier, query string, args ...any) ([]string, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	return all(rows, err, scanString)
}

// batches yields a list in parts.
func batches[T any](list []T, size int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for at := 0; at < len(list); at += size {
			if !yield(list[at:min(at+size, len(list))]) {
				return
			}
		}
	}
}

// listSizes are the numbers of parameters in lists, so that databases see few distinct statements.
var listSizes = [...]int{1, 10, 50, 200, 1000}

// maxList is the maximum length for padded.
const maxList = 1000

// padded returns ids as parameters of a list, repeating some.
func padded(ids []string) []any {
	size := len(ids)
	for _, s := range listSizes {
		if size <= s {
			size = s
			break
		}
	}
	args := make([]any, size)
	for i := range args {
		args[i] = ids[min(i, len(ids)-1)]
	}
	return args
}

// rowsPerInsert returns how many rows with a number of columns one statement inserts.
func (db *DB) rowsPerInsert(columns int) int {
	return max(1, min(db.limits.Rows, db.limits.Parameters/columns))
}

// insert inserts rows, which are lists of parameters. The numbers of rows per statement are powers
// of two, so that databases see few distinct statements.
func (c *Conn) insert(ctx context.Context, s Statement, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	most := c.db.rowsPerInsert(len(rows[0]))
	for len(rows) > 0 {
		n := 1 << (bits.Len(uint(min(most, len(rows)))) - 1)
		args := make([]any, 0, n*len(rows[0]))
		for _, row := range rows[:n] {
			args = append(args, row...)
		}
		if _, err := c.ExecN(ctx, s, n, args...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}
