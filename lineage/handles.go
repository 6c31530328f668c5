package lineage

import (
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Context is a view of a history that can be extended and forked. It is a handle: it does not hold
// the history, and may be copied and kept.
type Context struct {
	store *Store
	id    ContextID
	at    atomic.Pointer[knownHome] // of the last extension
}

// Thread is a conversation with its branches. It is a handle that may be copied and kept. It refers
// to the thread by id: if a thread is deleted and created again with the same source id, the handle
// refers to the new one.
type Thread struct {
	store *Store
	id    ThreadID
}

// knownHome caches the home of a context.
type knownHome struct {
	created time.Time // of the context; distinguishes it from a deleted one with the same id
	home    structure.Home
	run     structure.RunID // a run with that home
}

// ID returns the context's id.
func (c *Context) ID() ContextID { return c.id }

// ID returns the thread's id.
func (t *Thread) ID() ThreadID { return t.id }

// sameStore refuses a context argument that is nil or belongs to another store.
func (s *Store) sameStore(c *Context) error {
	if c == nil || c.store == nil {
		return fmt.Errorf("no context: %w", ErrInvalid)
	}
	if c.store != s && !write.Same(c.store.engine, s.engine) {
		return subjectError("context", c.id.String(), ErrInvalid, "it belongs to another store")
	}
	return nil
}

// handles returns handles of listed contexts.
func (s *Store) handles(all iter.Seq2[backend.Context, error]) iter.Seq2[*Context, error] {
	return func(yield func(*Context, error) bool) {
		for c, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&Context{store: s, id: c.ID}, nil) {
				return
			}
		}
	}
}
