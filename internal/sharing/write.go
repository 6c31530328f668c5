package sharing

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/remote"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Apply implements backend.Engine. A guest sends a commit again if the answer is lost.
func (e *Engine) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if h := e.current.Load(); h != nil && h.own != nil && !e.o.ReadOnly {
		r, err := h.own.Apply(ctx, c, o)
		if err == nil {
			return r, nil
		}
		if e.loseFailed(h, err); !e.lost(h, err) {
			return r, err
		}
	}
	if err := ctx.Err(); err != nil {
		return backend.Receipt{}, context.Cause(ctx)
	}
	if e.o.ReadOnly {
		return backend.Receipt{}, errReadOnly
	}
	if o.Once != nil {
		return e.applyOnce(ctx, c, o)
	}
	for try := 0; ; try++ {
		session, err := do(ctx, e, func(h *storeHandle) (*backend.Once, error) { return e.sessions.Take(ctx, h.Head) })
		if err != nil {
			return backend.Receipt{}, err
		}
		session.Sequence++
		request := *session
		o.Once = &request
		r, err := e.applyOnce(ctx, c, o)
		if sessionForgotten(err) && try < maxSessions {
			continue
		}
		if !errors.Is(err, backend.ErrUncertain) && !errors.Is(err, backend.ErrDiverged) {
			e.sessions.Free(session)
		}
		return r, err
	}
}

var errReadOnly = fmt.Errorf("store: %w", backend.ErrReadOnly)

// maxSessions limits the sessions that a commit starts because its session was forgotten.
const maxSessions = 3

// forgottenError is returned for a request that was sent once, to an engine that had forgotten its session. Nothing
// was applied.
type forgottenError struct{ error }

func (e forgottenError) Unwrap() error { return e.error }

func sessionForgotten(err error) bool {
	var forgotten forgottenError
	return errors.As(err, &forgotten)
}

// applyOnce sends a commit, and sends it again while answers are lost. It is applied once.
func (e *Engine) applyOnce(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	var uncertain error // of the last attempt whose answer was lost
	for range maxTries {
		h, err := e.handle(ctx)
		if err != nil {
			return backend.Receipt{}, errors.Join(err, uncertain)
		}
		r, err := h.Apply(ctx, c, o)
		if e.lost(h, err) {
			if errors.Is(err, backend.ErrUncertain) {
				uncertain = err
			}
			e.lose(h)
			continue
		}
		if err != nil {
			e.loseFailed(h, err)
			switch {
			case uncertain != nil:
				if !refused(err) {
					err = errors.Join(err, uncertain)
				}
			case errors.Is(err, remote.ErrPanicked) || errors.Is(err, backend.ErrReadOnly) || ctx.Err() != nil:
			case errors.Is(err, backend.ErrUncertain), errors.Is(err, backend.ErrDiverged):
				err = forgottenError{err}
			}
		}
		return r, err
	}
	return backend.Receipt{}, errors.Join(fmt.Errorf("store %s: its owners went away %d times", e.dir, maxTries), uncertain)
}

// refused reports whether an error proves that an earlier attempt did not apply the commit either. If it had been
// applied, the engine would have repeated its answer.
func refused(err error) bool {
	for _, why := range []error{backend.ErrTipMoved, backend.ErrConflict, backend.ErrExists, backend.ErrNotFound, backend.ErrInvalid, backend.ErrErased} {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}

// Outcome implements backend.Engine.
func (e *Engine) Outcome(ctx context.Context, o backend.Once) (backend.Receipt, error) {
	return do(ctx, e, func(h *storeHandle) (backend.Receipt, error) { return h.Outcome(ctx, o) })
}

// Forget implements backend.Engine.
func (e *Engine) Forget(ctx context.Context, session [16]byte) error {
	return e.change(ctx, func(h *storeHandle) error { return h.Forget(ctx, session) })
}

// Upload implements backend.Engine.
func (e *Engine) Upload(ctx context.Context, chunks []*structure.Chunk) (added int, err error) {
	err = e.change(ctx, func(h *storeHandle) (err error) {
		added, err = h.Upload(ctx, chunks)
		return err
	})
	return added, err
}

// change runs an operation that changes the store, as do does.
func (e *Engine) change(ctx context.Context, op func(h *storeHandle) error) error {
	_, err := do(ctx, e, func(h *storeHandle) (struct{}, error) {
		if e.o.ReadOnly {
			return struct{}{}, errReadOnly
		}
		err := op(h)
		e.loseFailed(h, err)
		return struct{}{}, err
	})
	return err
}

// Sync implements backend.Engine.
func (e *Engine) Sync(ctx context.Context) error {
	_, err := do(ctx, e, func(h *storeHandle) (struct{}, error) { return struct{}{}, h.Sync(ctx) })
	return err
}

// Pack implements backend.Packer.
func (e *Engine) Pack(ctx context.Context, o backend.PackOptions) (r backend.PackReport, err error) {
	err = e.change(ctx, func(h *storeHandle) error {
		p, ok := h.Engine.(backend.Packer)
		if !ok {
			return unsupported("pack")
		}
		r, err = p.Pack(ctx, o)
		return err
	})
	return r, err
}

// Collect implements backend.Collector.
func (e *Engine) Collect(ctx context.Context, o backend.CollectOptions) (r backend.CollectReport, err error) {
	collect := func(h *storeHandle) error {
		c, ok := h.Engine.(backend.Collector)
		if !ok {
			return unsupported("collect")
		}
		r, err = c.Collect(ctx, o)
		return err
	}
	if o.DryRun {
		_, err = do(ctx, e, func(h *storeHandle) (struct{}, error) { return struct{}{}, collect(h) })
	} else {
		err = e.change(ctx, collect)
	}
	return r, err
}

// Backup implements backend.Copier. A guest writes what the owner sends.
func (e *Engine) Backup(ctx context.Context, dir string, o backend.BackupOptions) (backend.BackupReport, error) {
	return do(ctx, e, func(h *storeHandle) (backend.BackupReport, error) {
		source, ok := h.Engine.(backend.CopySource)
		if !ok {
			return backend.BackupReport{}, unsupported("backup")
		}
		return embedded.WriteCopy(ctx, dir, source.Copy(ctx), o)
	})
}

// Receive implements backend.Receiver. A guest does not support it.
func (e *Engine) Receive(ctx context.Context, commits iter.Seq2[*structure.Commit, error]) error {
	return e.change(ctx, func(h *storeHandle) error {
		r, ok := h.Engine.(backend.Receiver)
		if !ok {
			return unsupported("receive")
		}
		return r.Receive(ctx, commits)
	})
}

func unsupported(what string) error {
	return fmt.Errorf("%s: not through another process: %w", what, errors.ErrUnsupported)
}
