package sqladapter

import (
	"context"
	"iter"
	"math/bits"
)

// Strings returns the values of a query with one column. It is for dialects.
func Strings(ctx context.Context, q Querier, query string, args ...any) ([]string, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	return all(&Rows{Rows: rows}, err, scanString)
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

// collect returns the rows of a query.
func collect[T any](ctx context.Context, c *Conn, scan func(*Rows) (T, error), s Statement, args ...any) ([]T, error) {
	rows, err := c.Query(ctx, s, args...)
	return all(rows, err, scan)
}

// collectList returns the rows of a query for a list of ids after other parameters, in parts.
func collectList[T any](ctx context.Context, c *Conn, scan func(*Rows) (T, error), s Statement, ids []string, others ...any) (found []T, err error) {
	for part := range batches(ids, maxList) {
		list := padded(part)
		rows, err := c.QueryN(ctx, s, len(list), append(others[:len(others):len(others)], list...)...)
		some, err := all(rows, err, scan)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

// collectMap returns the second column of a query for a list of ids by the first.
func collectMap[V any](ctx context.Context, c *Conn, s Statement, ids []string) (map[string]V, error) {
	found := make(map[string]V, len(ids))
	_, err := collectList(ctx, c, func(rows *Rows) (_ struct{}, err error) {
		var id string
		var v V
		err = rows.Scan(&id, &v)
		found[id] = v
		return struct{}{}, err
	}, s, ids)
	return found, err
}

// read returns what a function reads: see DB.Read.
func read[T any](ctx context.Context, db *DB, fn func(c *Conn) (T, error)) (found T, err error) {
	err = db.Read(ctx, func(c *Conn) error {
		found, err = fn(c)
		return err
	})
	return found, err
}

// readAll is collect outside of a transaction.
func readAll[T any](ctx context.Context, db *DB, scan func(*Rows) (T, error), s Statement, args ...any) ([]T, error) {
	return read(ctx, db, func(c *Conn) ([]T, error) { return collect(ctx, c, scan, s, args...) })
}

// readList is collectList outside of a transaction.
func readList[T any](ctx context.Context, db *DB, scan func(*Rows) (T, error), s Statement, ids []string, others ...any) ([]T, error) {
	return read(ctx, db, func(c *Conn) ([]T, error) { return collectList(ctx, c, scan, s, ids, others...) })
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
