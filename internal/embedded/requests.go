package embedded

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
)

// applied returns the commit of a request, or 0 if it was not applied.
func (e *Engine) applied(o *backend.Once) (uint64, error) {
	if s := e.sessions.known[o.Session]; s != nil {
		return s.Find(o.Session, o.Sequence)
	}
	if o.Since.Number < e.sessions.horizon {
		return 0, entries.Uncertain(o.Session, o.Sequence)
	}
	return 0, e.follows(o.Since)
}

// repeated returns the cursor of a request's commit, if it was applied before.
func (e *Engine) repeated(o *backend.Once) (at backend.Cursor, err error) {
	number, err := e.applied(o)
	if err != nil || number == 0 {
		return at, err
	}
	v := e.now()
	defer v.Close()
	return v.At(number)
}

// loadSessions reads the sessions from the index.
func (e *Engine) loadSessions() error {
	e.sessions = newSessions()
	s := e.index.Snapshot()
	defer s.Close()
	return e.sessions.load(s, s.State().Number)
}

// saveHorizon writes entries to the index, and the horizon if the index has an older one. The write
// lock is held, or the store is being opened.
func (e *Engine) saveHorizon(batch []index.Entry) {
	e.sessions.putHorizon(func(key, value []byte) { batch = append(batch, index.Entry{Key: key, Value: value}) })
	if len(batch) > 0 {
		state := e.index.State()
		state.Counts = e.counts.Values()
		e.index.Apply(state, batch)
	}
}

// Outcome implements backend.Engine.
func (e *Engine) Outcome(_ context.Context, o backend.Once) (backend.Receipt, error) {
	if err := e.begin(); err != nil {
		return backend.Receipt{}, err
	}
	defer e.end()
	if err := o.Valid(); err != nil {
		return backend.Receipt{}, err
	}
	e.write.Lock()
	defer e.write.Unlock()
	at, err := e.repeated(&o)
	if err == nil && at.Number == 0 {
		err = fmt.Errorf("request %d of session %x: %w", o.Sequence, o.Session, backend.ErrNotFound)
	}
	if err != nil {
		return backend.Receipt{}, err
	}
	return backend.Receipt{Cursor: at, Repeated: true}, nil
}

// Forget implements backend.Engine.
func (e *Engine) Forget(_ context.Context, id [16]byte) error {
	if err := e.begin(); err != nil {
		return err
	}
	defer e.end()
	if e.opt.ReadOnly {
		return fmt.Errorf("store: %w", backend.ErrReadOnly)
	}
	e.write.Lock()
	defer e.write.Unlock()
	if e.sessions.known[id] == nil {
		return nil
	}
	var batch []index.Entry
	e.sessions.forget(id, func(key, value []byte) { batch = append(batch, index.Entry{Key: key, Value: value}) })
	e.saveHorizon(batch)
	return nil
}
