package write

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A transaction reads its own changes, then the snapshot. State that others can change becomes an expectation
// when it is first read, as it is in the snapshot.

func isNotFound(err error) bool { return errors.Is(err, backend.ErrNotFound) }

// first reports whether something is read for the first time.
func (s *Stage) first(what any) bool {
	if s.read[what] {
		return false
	}
	s.read[what] = true
	return true
}

func missing(subject, id string) error {
	return &backend.SubjectError{Subject: subject, ID: id, Err: backend.ErrNotFound}
}

// read returns the record of the transaction under a key, else that of the snapshot, which becomes an
// expectation.
func read[K comparable, T any, P interface {
	*T
	structure.Record
}](s *Stage, changed map[K]P, key K, subject, id string, stored func() (P, error), expect func(was P)) (P, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if own, ok := changed[key]; ok {
		if own == nil {
			return nil, missing(subject, id)
		}
		ok := *own
		return &ok, nil
	}
	ok, err := stored()
	if err != nil && !isNotFound(err) {
		return nil, err
	}
	if s.first(key) {
		var was P
		if err == nil {
			was = owned[T, P](*ok)
		}
		expect(was)
	}
	return ok, err
}

// Thread implements backend.Reader.
func (s *Stage) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return read(s, s.threads, id, "thread", id.String(),
		func() (*structure.Thread, error) { return s.Reader.Thread(ctx, id) },
		func(was *structure.Thread) { s.batch.ExpectThread(id, was) })
}

// Context implements backend.Reader.
func (s *Stage) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	if err := s.alive(); err != nil {
		return backend.Context{}, err
	}
	if own, changed := s.contexts[id]; changed {
		if own == nil {
			return backend.Context{}, missing("context", id.String())
		}
		return *own, nil
	}
	c, err := s.Reader.Context(ctx, id)
	if err != nil && !isNotFound(err) {
		return backend.Context{}, err
	}
	if s.first(id) {
		var was *structure.Context
		if err == nil {
			was = owned(c.Context)
		}
		s.batch.ExpectContext(id, was)
	}
	return c, err
}

// Remnant implements backend.Reader. A context that the transaction deleted counts as a remnant, with or
// without forks.
func (s *Stage) Remnant(ctx context.Context, id structure.ContextID) (*structure.Remnant, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	own, changed := s.contexts[id]
	if changed && own != nil {
		return nil, missing("remnant", id.String())
	}
	if remnant := s.remnants[id]; remnant != nil {
		return owned(*remnant), nil
	}
	return s.Reader.Remnant(ctx, id)
}

// isOver reports whether the transaction deleted a home, or replaced it.
func (s *Stage) isOver(home structure.Home) bool {
	thread, changed := s.threads[home.Thread]
	return changed && (thread == nil || thread.Home() != home)
}
