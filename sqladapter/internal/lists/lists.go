// Package lists reads and writes lists with statements of sqladapter: all rows of a query, the rows for a
// list of ids, the rows to insert, each of any length.
package lists

import (
	"context"
	"iter"
	"math/bits"

	"github.com/lineage-store/lineage/sqladapter"
)

// Batches yields a list in parts.
func Batches[T any](list []T, size int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for at := 0; at < len(list); at += size {
			if !yield(list[at:min(at+size, len(list))]) {
				return
			}
		}
	}
}

// sizes are the numbers of parameters in lists, so that databases see few distinct statements.
var sizes = [...]int{1, 10, 50, 200, 1000}

// Max is the maximum length for Padded.
const Max = 1000

// Padded returns ids as the parameters of a list. It repeats some to reach one of the sizes.
func Padded(ids []string) []any {
	size := len(ids)
	for _, s := range sizes {
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

// All scans the rows of a query.
func All[T any](rows *sqladapter.Rows, err error, scan func(*sqladapter.Rows) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, v)
	}
	return found, rows.Err()
}

// ScanString scans a row with one text.
func ScanString(rows *sqladapter.Rows) (s string, err error) {
	err = rows.Scan(&s)
	return s, err
}

// First returns the first row of a query, nil if there is none.
func First[T any](ctx context.Context, c *sqladapter.Conn, scan func(*sqladapter.Rows) (T, error), s sqladapter.Statement, args ...any) (*T, error) {
	rows, err := c.Query(ctx, s, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, rows.Err()
	}
	v, err := scan(rows)
	if err != nil {
		return nil, err
	}
	return &v, rows.Close()
}

// Collect returns the rows of a query.
func Collect[T any](ctx context.Context, c *sqladapter.Conn, scan func(*sqladapter.Rows) (T, error), s sqladapter.Statement, args ...any) ([]T, error) {
	rows, err := c.Query(ctx, s, args...)
	return All(rows, err, scan)
}

// CollectList returns the rows of a query for a list of ids after other parameters, in parts.
func CollectList[T any](
	ctx context.Context, c *sqladapter.Conn, scan func(*sqladapter.Rows) (T, error), s sqladapter.Statement, ids []string, others ...any,
) (found []T, err error) {
	for part := range Batches(ids, Max) {
		list := Padded(part)
		rows, err := c.QueryN(ctx, s, len(list), append(others[:len(others):len(others)], list...)...)
		page, err := All(rows, err, scan)
		if err != nil {
			return nil, err
		}
		found = append(found, page...)
	}
	return found, nil
}

// CollectMap returns a query's rows for a list of ids as a map from the first column to the second.
func CollectMap[V any](ctx context.Context, c *sqladapter.Conn, s sqladapter.Statement, ids []string) (map[string]V, error) {
	found := make(map[string]V, len(ids))
	_, err := CollectList(ctx, c, func(rows *sqladapter.Rows) (_ struct{}, err error) {
		var id string
		var v V
		err = rows.Scan(&id, &v)
		found[id] = v
		return struct{}{}, err
	}, s, ids)
	return found, err
}

// CollectSet returns those ids of a list that a query finds.
func CollectSet(ctx context.Context, c *sqladapter.Conn, s sqladapter.Statement, ids []string) (map[string]bool, error) {
	found, err := CollectList(ctx, c, ScanString, s, ids)
	has := make(map[string]bool, len(found))
	for _, id := range found {
		has[id] = true
	}
	return has, err
}

// Read returns what a function reads outside of a transaction: see DB.Read.
func Read[T any](ctx context.Context, db *sqladapter.DB, fn func(c *sqladapter.Conn) (T, error)) (found T, err error) {
	err = db.Read(ctx, func(c *sqladapter.Conn) error {
		found, err = fn(c)
		return err
	})
	return found, err
}

// ReadAll is Collect outside of a transaction.
func ReadAll[T any](ctx context.Context, db *sqladapter.DB, scan func(*sqladapter.Rows) (T, error), s sqladapter.Statement, args ...any) ([]T, error) {
	return Read(ctx, db, func(c *sqladapter.Conn) ([]T, error) { return Collect(ctx, c, scan, s, args...) })
}

// ReadList is CollectList outside of a transaction.
func ReadList[T any](
	ctx context.Context, db *sqladapter.DB, scan func(*sqladapter.Rows) (T, error), s sqladapter.Statement, ids []string, others ...any,
) ([]T, error) {
	return Read(ctx, db, func(c *sqladapter.Conn) ([]T, error) { return CollectList(ctx, c, scan, s, ids, others...) })
}

// Insert inserts rows, which are lists of parameters. The numbers of rows per statement are powers
// of two, so that databases see few distinct statements.
func Insert(ctx context.Context, c *sqladapter.Conn, s sqladapter.Statement, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	limits := c.Dialect().Limits()
	most := max(1, min(limits.Rows, limits.Parameters/len(rows[0])))
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

// ExecList runs a statement for a list of ids.
func ExecList(ctx context.Context, c *sqladapter.Conn, s sqladapter.Statement, ids []string) error {
	for part := range Batches(ids, Max) {
		args := Padded(part)
		if _, err := c.ExecN(ctx, s, len(args), args...); err != nil {
			return err
		}
	}
	return nil
}
