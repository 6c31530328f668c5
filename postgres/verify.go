package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Verify implements backend.Engine. It reads the log from the start: whether its rows follow each
// other, and their checksums. Deep makes a replica of it in memory, and verifies that.
func (e *Engine) Verify(ctx context.Context, o backend.VerifyOptions) iter.Seq2[backend.Finding, error] {
	return func(yield func(backend.Finding, error) bool) {
		if err := e.fresh(ctx); err != nil {
			yield(backend.Finding{}, err)
			return
		}
		last, err := e.log.last(ctx)
		var replica *embedded.Engine
		if err == nil && o.Deep {
			replica, err = embedded.Open(ctx, "", embedded.Options{InMemory: true, Durability: backend.Normal})
		}
		if err != nil {
			yield(backend.Finding{}, err)
			return
		}
		if replica != nil {
			defer replica.Close()
		}
		if !e.verifyLog(ctx, o, replica, last, yield) || replica == nil {
			return
		}
		for f, err := range replica.Verify(ctx, backend.VerifyOptions{Deep: true}) {
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// verifyLog checks the rows of the log and gives them to a replica, if there is one. It reports
// whether to go on.
func (e *Engine) verifyLog(ctx context.Context, o backend.VerifyOptions, replica *embedded.Engine, last backend.Cursor, yield func(backend.Finding, error) bool) bool {
	var at head
	for more := true; more; {
		var rows []row
		err := again(ctx, func(ctx context.Context) (err error) {
			rows, more, err = e.log.tail(ctx, e.log.pool, at, mostRows)
			return err
		})
		for i := 0; err == nil && i < len(rows); i++ {
			r := &rows[i]
			if err = e.verifyRow(ctx, r, replica); err == nil {
				at = head{r.first, r.last()}
			}
		}
		var damage *backend.CorruptError
		switch {
		case errors.As(err, &damage):
			yield(backend.Finding{Subject: "journal", File: damage.File, Problem: damage.What}, nil)
			return false // what comes behind it cannot be judged
		case err != nil:
			yield(backend.Finding{}, err)
			return false
		}
		if o.Progress != nil {
			o.Progress(int64(at.Number), int64(max(last.Number, at.Number)))
		}
	}
	return true
}

func (e *Engine) verifyRow(ctx context.Context, r *row, replica *embedded.Engine) error {
	commits, err := r.commits()
	for i := 0; err == nil && replica != nil && i < len(commits); i++ {
		if err = replica.Follow(ctx, commits[i]); err != nil && ctx.Err() == nil {
			err = &backend.CorruptError{File: fmt.Sprintf("row %d of the log", r.first), What: err.Error()}
		}
	}
	return err
}
