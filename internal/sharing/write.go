package sharing

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/remote"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// sessions number the commits of a guest, so that each is applied once. A session has one commit at
// a time. The owner forgets a session when it is old. A guest that closes does not ask for it:
// whether a new session was ever used is known only while no session that began later is forgotten.
type sessions struct {
	mu   sync.Mutex
	free []*backend.Once
}

// take returns the next request of a session.
func (s *sessions) take(ctx context.Context, h *handle) (*backend.Once, error) {
	s.mu.Lock()
	if n := len(s.free); n > 0 {
		one := s.free[n-1]
		s.free = s.free[:n-1]
		s.mu.Unlock()
		one.Sequence++
		return one, nil
	}
	s.mu.Unlock()
	head, err := h.Head(ctx)
	if err != nil {
		return nil, err
	}
	one := &backend.Once{Since: head, Sequence: 1}
	_, err = rand.Read(one.Session[:])
	return one, err
}

// give returns a session whose request has an answer.
func (s *sessions) give(one *backend.Once) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, one)
}

// Apply implements backend.Engine. A commit of a guest is sent again where its answer is lost.
func (e *Engine) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if h := e.now.Load(); h != nil && h.own != nil && !e.o.ReadOnly {
		r, err := h.own.Apply(ctx, c, o)
		if err == nil {
			return r, nil
		}
		if e.failed(h, err); !e.lost(h, err) {
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
		one, err := do(ctx, e, func(h *handle) (*backend.Once, error) { return e.sessions.take(ctx, h) })
		if err != nil {
			return backend.Receipt{}, err
		}
		is := *one
		o.Once = &is
		r, err := e.applyOnce(ctx, c, o)
		if unknownSession(err) && try < mostSessions {
			continue // it was sent once only: the session was forgotten before
		}
		if !errors.Is(err, backend.ErrUncertain) && !errors.Is(err, backend.ErrDiverged) {
			e.sessions.give(one)
		}
		return r, err
	}
}

var errReadOnly = fmt.Errorf("store: %w", backend.ErrReadOnly)

// mostSessions is how often a commit begins another session because one was forgotten.
const mostSessions = 3

// forgottenError is the answer to a request that was sent once, to an engine that does not know
// its session any more. Nothing was applied.
type forgottenError struct{ error }

func (e forgottenError) Unwrap() error { return e.error }

func unknownSession(err error) bool {
	var is forgottenError
	return errors.As(err, &is)
}

// applyOnce sends a request until it has an answer.
func (e *Engine) applyOnce(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	sent := false // and the answer was lost
	var uncertain error
	for range mostTries {
		h, err := e.handle(ctx)
		if err != nil {
			return backend.Receipt{}, errors.Join(err, uncertain)
		}
		r, err := h.Apply(ctx, c, o)
		if e.lost(h, err) {
			if errors.Is(err, backend.ErrUncertain) {
				sent, uncertain = true, err
			}
			e.lose(h)
			continue
		}
		if err != nil {
			e.failed(h, err)
			switch {
			case sent: // what it says of this attempt says nothing of the first
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
	return backend.Receipt{}, errors.Join(fmt.Errorf("store %s: its owners went away %d times", e.dir, mostTries), uncertain)
}

// refused reports whether an error is what the engine says of a commit that it has not applied: an
// engine that applied it before answers as it did then.
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
	return do(ctx, e, func(h *handle) (backend.Receipt, error) { return h.Outcome(ctx, o) })
}

// Forget implements backend.Engine.
func (e *Engine) Forget(ctx context.Context, session [16]byte) error {
	return e.change(ctx, func(h *handle) error { return h.Forget(ctx, session) })
}

// Upload implements backend.Engine.
func (e *Engine) Upload(ctx context.Context, chunks []*structure.Chunk) (added int, err error) {
	err = e.change(ctx, func(h *handle) (err error) {
		added, err = h.Upload(ctx, chunks)
		return err
	})
	return added, err
}

// change does what changes the store, and can be done twice.
func (e *Engine) change(ctx context.Context, op func(h *handle) error) error {
	_, err := do(ctx, e, func(h *handle) (struct{}, error) {
		if e.o.ReadOnly {
			return struct{}{}, errReadOnly
		}
		err := op(h)
		e.failed(h, err)
		return struct{}{}, err
	})
	return err
}

// Sync implements backend.Engine.
func (e *Engine) Sync(ctx context.Context) error {
	_, err := do(ctx, e, func(h *handle) (struct{}, error) { return struct{}{}, h.Sync(ctx) })
	return err
}

// Pack implements backend.Packer.
func (e *Engine) Pack(ctx context.Context, o backend.PackOptions) (r backend.PackReport, err error) {
	err = e.change(ctx, func(h *handle) error {
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
	collect := func(h *handle) error {
		c, ok := h.Engine.(backend.Collector)
		if !ok {
			return unsupported("collect")
		}
		r, err = c.Collect(ctx, o)
		return err
	}
	if o.DryRun {
		_, err = do(ctx, e, func(h *handle) (struct{}, error) { return struct{}{}, collect(h) })
	} else {
		err = e.change(ctx, collect)
	}
	return r, err
}

// Backup implements backend.Copier. A guest writes what the owner sends.
func (e *Engine) Backup(ctx context.Context, dir string, o backend.BackupOptions) (backend.BackupReport, error) {
	return do(ctx, e, func(h *handle) (backend.BackupReport, error) {
		source, ok := h.Engine.(backend.CopySource)
		if !ok {
			return backend.BackupReport{}, unsupported("backup")
		}
		return embedded.WriteCopy(ctx, dir, source.Copy(ctx), o)
	})
}

// Receive implements backend.Receiver. A guest cannot.
func (e *Engine) Receive(ctx context.Context, commits iter.Seq2[*structure.Commit, error]) error {
	return e.change(ctx, func(h *handle) error {
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
