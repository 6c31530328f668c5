package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Verify implements backend.Engine. It reads the log from the start and checks the order of the rows
// and their checksums. Deep builds a replica in memory and verifies that.
func (e *Engine) Verify(ctx context.Context, o backend.VerifyOptions) iter.Seq2[backend.Finding, error] {
	return func(yield func(backend.Finding, error) bool) {
		if err := e.fresh(ctx); err != nil {
			yield(backend.Finding{}, err)
			return
		}
		last, err := e.log.last(ctx)
		for range mostRetries {
			if err == nil {
				err = e.verifyOnce(ctx, o, last, yield)
			}
			if !errors.Is(err, errCollected) { // else it begins again
				break
			}
		}
		if err != nil {
			yield(backend.Finding{}, err)
		}
	}
}

// verifyOnce is errCollected if the log was collected while it was read.
func (e *Engine) verifyOnce(ctx context.Context, o backend.VerifyOptions, last backend.Cursor, yield func(backend.Finding, error) bool) error {
	var replica *embedded.Engine
	if o.Deep {
		var err error
		if replica, err = embedded.Open(ctx, "", embedded.Options{InMemory: true, Durability: backend.Normal}); err != nil {
			return err
		}
		defer replica.Close()
	}
	err := e.verifyLog(ctx, o, replica, last)
	var damage *backend.CorruptError
	switch {
	case errors.As(err, &damage): // what follows cannot be judged
		yield(backend.Finding{Subject: "journal", File: damage.File, Problem: damage.What}, nil)
		return nil
	case err != nil || replica == nil:
		return err
	}
	for f, err := range replica.Verify(ctx, backend.VerifyOptions{Deep: true}) {
		if !yield(f, err) || err != nil {
			break
		}
	}
	return nil
}

// verifyLog checks the rows of the log and adds them to a replica, if there is one.
func (e *Engine) verifyLog(ctx context.Context, o backend.VerifyOptions, replica *embedded.Engine, last backend.Cursor) error {
	is, err := e.log.collected(ctx)
	if err != nil {
		return err
	}
	at := head{epoch: is.epoch}
	for more := true; more; {
		var rows []row
		err := again(ctx, func(ctx context.Context) (err error) {
			rows, more, err = e.log.tail(ctx, e.log.pool, at, mostCommits)
			return err
		})
		for i := 0; err == nil && i < len(rows); i++ {
			r := &rows[i]
			if err = verifyRow(ctx, r, is.live, replica); err == nil {
				at = at.after(r)
			}
		}
		if err != nil {
			return err
		}
		if o.Progress != nil {
			o.Progress(int64(at.Number), int64(max(last.Number, at.Number)))
		}
	}
	return nil
}

func verifyRow(ctx context.Context, r *row, set *live.Set, replica *embedded.Engine) error {
	commits, _, err := r.left(set, new(backend.CollectReport))
	for i := 0; err == nil && replica != nil && i < len(commits); i++ {
		if err = replica.Follow(ctx, commits[i]); err != nil && ctx.Err() == nil {
			err = &backend.CorruptError{File: fmt.Sprintf("row %d of the log", r.first), What: err.Error()}
		}
	}
	return err
}
