package sqladapter

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// prepared holds the prepared statements of a pool, for drivers that do not cache them.
type prepared struct {
	pool *sql.DB
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
func (p *prepared) prepare(ctx context.Context, texts []string) {
	for _, text := range texts {
		p.mu.Lock()
		full := len(p.statements) >= p.most
		p.mu.Unlock()
		if full {
			return
		}
		statement, err := p.pool.PrepareContext(ctx, text)
		if err != nil {
			continue
		}
		p.mu.Lock()
		if p.statements == nil {
			p.statements = make(map[string]*sql.Stmt)
		}
		if p.statements[text] != nil {
			statement.Close() // another goroutine has prepared it too
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
