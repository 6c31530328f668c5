package sqladapter

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// prepared are the prepared statements of a pool, for drivers that do not cache them.
type prepared struct {
	most int

	mu         sync.Mutex
	statements map[string]*sql.Stmt
}

func (p *prepared) get(text string) *sql.Stmt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.statements[text]
}

// prepare prepares statements, up to a limit. Errors are ignored: they occur again when the
// statement runs.
func (p *prepared) prepare(ctx context.Context, pool *sql.DB, texts []string) {
	for _, text := range texts {
		p.mu.Lock()
		full := len(p.statements) >= p.most
		p.mu.Unlock()
		if full {
			return
		}
		statement, err := pool.PrepareContext(ctx, text)
		if err != nil {
			continue
		}
		p.mu.Lock()
		if p.statements == nil {
			p.statements = make(map[string]*sql.Stmt)
		}
		if p.statements[text] != nil {
			statement.Close() // prepared concurrently
		} else {
			p.statements[text] = statement
		}
		p.mu.Unlock()
	}
}

// close closes the statements.
func (p *prepared) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, statement := range p.statements {
		errs = append(errs, statement.Close())
	}
	p.statements = nil
	return errors.Join(errs...)
}

// prepared returns a prepared statement, nil if there is none.
func (c *Conn) prepared(ctx context.Context, text string) *sql.Stmt {
	if c.db.limits.Prepared == 0 {
		return nil
	}
	if c.tx == nil {
		if c.db.reading.get(text) == nil {
			c.db.reading.prepare(ctx, c.db.pools.Read, []string{text})
		}
		return c.db.reading.get(text)
	}
	statement := c.db.writing.get(text)
	if statement == nil {
		// The transaction occupies the connection: prepare the statement afterwards.
		c.missed = append(c.missed, text)
		return nil
	}
	return c.tx.StmtContext(ctx, statement)
}
