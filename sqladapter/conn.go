package sqladapter

import (
	"context"
	"database/sql"
	"unicode/utf8"
)

// Conn runs statements, inside or outside of a transaction.
type Conn struct {
	*renderer
	querier  Querier
	prepared *prepared
	tx       *sql.Tx // nil outside of a transaction
	// missed are statements to prepare after the transaction.
	missed []string
}

// Dialect returns the dialect of the database.
func (c *Conn) Dialect() Dialect { return c.dialect }

// Syntax returns the syntax of the dialect.
func (c *Conn) Syntax() *Syntax { return &c.syntax }

// Querier returns a Querier for SQL in the syntax of the database, such as scripts.
func (c *Conn) Querier() Querier { return c.querier }

// Exec runs a statement and returns the number of changed rows.
func (c *Conn) Exec(ctx context.Context, s Statement, args ...any) (int64, error) {
	return c.ExecN(ctx, s, 1, args...)
}

// ExecN is like Exec, for statements with marks that repeat n times.
func (c *Conn) ExecN(ctx context.Context, s Statement, n int, args ...any) (int64, error) {
	text, err := c.text(s, n)
	if err != nil {
		return 0, err
	}
	args = c.arguments(args)
	var result sql.Result
	if prepared := c.statement(ctx, text); prepared != nil {
		result, err = prepared.ExecContext(ctx, args...)
	} else {
		result, err = c.querier.ExecContext(ctx, text, args...)
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Query runs a query. If a parameter is a text that is not UTF-8, no row matches.
func (c *Conn) Query(ctx context.Context, s Statement, args ...any) (*Rows, error) {
	return c.QueryN(ctx, s, 1, args...)
}

// QueryN is like Query, for statements with marks that repeat n times.
func (c *Conn) QueryN(ctx context.Context, s Statement, n int, args ...any) (*Rows, error) {
	text, err := c.text(s, n)
	if err != nil {
		return nil, err
	}
	for _, arg := range args {
		if s, ok := arg.(string); ok && !utf8.ValidString(s) {
			return &Rows{}, nil // a driver would return an error or search for another text
		}
	}
	args = c.arguments(args)
	var rows *sql.Rows
	if prepared := c.statement(ctx, text); prepared != nil {
		rows, err = prepared.QueryContext(ctx, args...)
	} else {
		rows, err = c.querier.QueryContext(ctx, text, args...)
	}
	return &Rows{rows, c.escaped}, err
}

// Get scans the first row of a query and reports whether there is one.
func (c *Conn) Get(ctx context.Context, s Statement, args []any, into ...any) (bool, error) {
	rows, err := c.Query(ctx, s, args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	if !rows.Next() {
		return false, rows.Err()
	}
	if err := rows.Scan(into...); err != nil {
		return false, err
	}
	return true, rows.Close()
}

// statement returns a prepared statement, nil if there is none.
func (c *Conn) statement(ctx context.Context, text string) *sql.Stmt {
	if c.prepared.most == 0 {
		return nil
	}
	statement := c.prepared.get(text)
	switch {
	case c.tx == nil && statement == nil:
		c.prepared.prepare(ctx, []string{text})
		return c.prepared.get(text)
	case c.tx == nil:
		return statement
	case statement == nil:
		// The transaction occupies the connection, so the statement is prepared afterwards.
		c.missed = append(c.missed, text)
		return nil
	}
	return c.tx.StmtContext(ctx, statement)
}
