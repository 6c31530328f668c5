package sharing

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/lineage-store/lineage/internal/remote"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Open opens or creates the store in a directory, or connects to the process that has it open.
func Open(ctx context.Context, dir string, o Options) (*Engine, error) {
	e := &Engine{dir: dir, o: o}
	e.Sequences.Open = begin(e, func(h *storeHandle) backend.Reader { return h })
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	h, err := e.find(ctx, o.Wait)
	if err != nil {
		return nil, err
	}
	if id, ok := h.Engine.(backend.Identified); ok {
		e.id = id.StoreID()
	}
	if e.dirInfo, err = os.Stat(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", dir, err), h.close())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set(h)
	return e, nil
}

// Close implements backend.Engine. If this process is the owner, one of its guests becomes the owner.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.cancel(errClosed)
	e.mu.Lock() // no search can start after this
	h := e.current.Load()
	e.mu.Unlock()
	var err error
	if h != nil {
		err = h.close()
	}
	e.tasks.Wait()
	return err
}

// SameStore reports whether another engine has the same directory open.
func (e *Engine) SameStore(other backend.Engine) bool {
	o, ok := other.(*Engine)
	return ok && os.SameFile(e.dirInfo, o.dirInfo)
}

// InPlace returns an error unless the directory that was opened is still at its path: a file that is made there by name would be in another
// store.
func (e *Engine) InPlace() error {
	there, err := os.Stat(e.dir)
	if err == nil && os.SameFile(there, e.dirInfo) {
		return nil
	}
	if h := e.current.Load(); h != nil && h.own != nil && !h.readOnly && h.own.InPlace() == nil {
		return nil // the file system numbers open files anew
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("store %s: its directory was moved or removed while it was open: %w", e.dir, backend.ErrNotFound)
	case err != nil:
		return fmt.Errorf("store %s: %w", e.dir, err)
	}
	return fmt.Errorf("store %s: another directory has taken its place: %w", e.dir, backend.ErrDiverged)
}

// Role describes the process that has the store open, and the processes that use it through that process.
type Role struct {
	Owner  remote.Process
	Guests []remote.Process
	// Owns is set when this handle is the owner.
	Owns bool
}

// Role returns the current owner and its guests.
func (e *Engine) Role(ctx context.Context) (Role, error) {
	return do(ctx, e, func(h *storeHandle) (r Role, err error) {
		if h.own != nil {
			r = Role{Owner: remote.ThisProcess(), Owns: true}
			if h.server != nil {
				r.Guests = h.server.Guests()
			}
			return r, nil
		}
		r.Owner = h.client.Store().Owner
		r.Guests, err = h.client.Guests(ctx)
		return r, err
	})
}

// StoreID implements backend.Identified.
func (e *Engine) StoreID() [16]byte { return e.id }

// Damage implements backend.Impaired. It returns the damage found when the store was last opened.
func (e *Engine) Damage() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.damage
}
