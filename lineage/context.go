package lineage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
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

// ID returns the context's id.
func (c *Context) ID() ContextID { return c.id }

// ContextInfo is the current state of a context.
type ContextInfo struct {
	ID     ContextID
	Thread ThreadID // zero outside of threads
	// Branch is its branch name, if any.
	Branch string
	// Parent is the context that it was forked from, else zero.
	Parent ContextID
	// Base is the span it started at, Tip the span it points to.
	Base, Tip SpanRef
	// Set is equal for alternatives that were created together, see Alternatives; else zero.
	// Entry.Set is the set of the alternative that begins with the entry.
	Set       structure.SpanSetID
	Overrides Overrides
	Metadata  []byte
	CreatedAt time.Time
	// UpdatedAt is the time of the last move of its tip.
	UpdatedAt time.Time
}

func contextInfo(c *backend.Context) ContextInfo {
	return ContextInfo{
		ID: c.ID, Thread: c.Thread, Parent: c.Parent, Base: c.Base, Tip: c.Tip, Set: c.Set, Overrides: c.Overrides.Clone(),
		Metadata: bytes.Clone(c.Metadata), CreatedAt: c.CreatedAt, UpdatedAt: time.UnixMilli(c.MovedAt).UTC(),
	}
}

// ContextOptions configure a context that starts with an empty history.
type ContextOptions struct {
	Overrides Overrides
	// Metadata is JSON of the caller, kept byte for byte.
	Metadata []byte
}

// NewContext creates an empty context outside of any thread.
func (s *Store) NewContext(ctx context.Context, o ContextOptions) (*Context, error) {
	if err := checkSettings(&o.Overrides, o.Metadata); err != nil {
		return nil, err
	}
	var id ContextID
	err := s.change(ctx, func(b *write.Batch, _ write.Try) error {
		id = b.NewContext(write.Context{Overrides: o.Overrides, Metadata: o.Metadata}).ID
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Context{store: s, id: id}, nil
}

// Context returns the context with an id.
func (s *Store) Context(ctx context.Context, id ContextID) (*Context, error) {
	if _, err := s.engine.Context(ctx, id); err != nil {
		return nil, err
	}
	return &Context{store: s, id: id}, nil
}

// Info returns the current state of the context.
func (c *Context) Info(ctx context.Context) (ContextInfo, error) {
	state, err := c.store.engine.Context(ctx, c.id)
	if err != nil {
		return ContextInfo{}, err
	}
	info := contextInfo(&state)
	if !state.Thread.IsZero() {
		b, err := backend.BranchOf(ctx, c.store.engine, state.Thread, c.id)
		if err != nil {
			return ContextInfo{}, err
		}
		if b != nil {
			info.Branch = b.Name
		}
	}
	return info, nil
}

// Tip returns the span that the context points to; the zero ref while it is empty.
func (c *Context) Tip(ctx context.Context) (SpanRef, error) {
	state, err := c.store.engine.Context(ctx, c.id)
	if err != nil {
		return SpanRef{}, err
	}
	return state.Tip, nil
}

// Children yields the contexts that were forked from this one.
func (c *Context) Children(ctx context.Context) iter.Seq2[*Context, error] {
	return func(yield func(*Context, error) bool) {
		for child, err := range c.store.engine.Children(ctx, c.id, structure.ContextID{}) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&Context{store: c.store, id: child.ID}, nil) {
				return
			}
		}
	}
}

// Update changes the overrides and metadata of the context without losing concurrent changes.
// Fields that change leaves alone keep their values; if it returns an error, nothing is changed.
// change may be called more than once. It must not change the context itself: that would deadlock.
func (c *Context) Update(ctx context.Context, change func(*ContextInfo) error) error {
	defer c.store.writer.Lock(c.id).Unlock()
	return c.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		state, err := c.store.engine.Context(ctx, c.id)
		if err != nil {
			return err
		}
		info := contextInfo(&state)
		if err := change(&info); err != nil {
			return err
		}
		is := state.Context
		is.Overrides, is.Metadata = info.Overrides, info.Metadata
		if err := checkChanged("context", c.id.String(), "overrides", state.Overrides.JSON, is.Overrides.JSON); err != nil {
			return err
		}
		if err := checkChanged("context", c.id.String(), "metadata", state.Metadata, is.Metadata); err != nil {
			return err
		}
		if !structure.Equal(&state.Context, &is) {
			b.ExpectContext(c.id, &state.Context)
			b.StateContext(is)
		}
		return nil
	})
}

// Delete deletes the context. The context of a branch is deleted with DeleteBranch; here it is
// ErrConflict. Forks of the context remain, and overrides that they inherited become their own; its
// summaries are deleted. The next Collect frees the disk space.
func (c *Context) Delete(ctx context.Context) error {
	one := func(ctx context.Context, from backend.Reader) iter.Seq2[backend.Context, error] {
		return func(yield func(backend.Context, error) bool) { yield(from.Context(ctx, c.id)) }
	}
	var thread ThreadID
	may := func() error {
		state, err := c.store.engine.Context(ctx, c.id)
		if thread = state.Thread; err != nil || thread.IsZero() {
			return err
		}
		return c.store.requireUnnamed(ctx, state.Thread, c.id, ErrConflict)
	}
	return c.store.removeContexts(ctx, one, ThreadID{}, may, func() error {
		if thread.IsZero() {
			return c.store.change(ctx, func(b *write.Batch, _ write.Try) error {
				b.DeleteContext(c.id)
				return nil
			})
		}
		// The thread changes too, so that its UpdatedAt does not depend on which context moved
		// last.
		return (&Thread{store: c.store, id: thread}).change(ctx, func(b *write.Batch, t *structure.Thread) error {
			b.DeleteContext(c.id)
			if t.Active == c.id {
				t.Active = ContextID{}
			}
			return nil
		})
	})
}

// maxRemoveTries limits retries when others commit while contexts are being removed.
const maxRemoveTries = 3

// chosenContexts yields contexts of a state.
type chosenContexts func(context.Context, backend.Reader) iter.Seq2[backend.Context, error]

// removeContexts removes contexts, if may allows it. Overrides that forks inherit from them are
// first copied to the forks, except to forks in the thread gone, which is deleted as well. They are
// copied again after the removal if others committed in between and may have forked.
func (s *Store) removeContexts(ctx context.Context, contexts chosenContexts, gone ThreadID, may, remove func() error) error {
	if err := may(); err != nil {
		return err
	}
	for try := 1; ; try++ {
		var done bool
		var failed error // after the removal, which is not repeated
		err := backend.Repeat(func() (err error) {
			if done, err = s.tryRemoveContexts(ctx, contexts, gone, remove, try == maxRemoveTries); done {
				failed, err = err, nil
			}
			return err
		})
		if done || err != nil {
			return cmp.Or(failed, err)
		}
	}
}

// tryRemoveContexts does nothing and returns false if others commit before the removal, unless it
// is the last try.
func (s *Store) tryRemoveContexts(ctx context.Context, contexts chosenContexts, gone ThreadID, remove func() error, last bool) (done bool, err error) {
	before, err := s.engine.Snapshot(ctx)
	if err != nil {
		return false, err
	}
	defer before.Close()
	expected, err := s.copyInheritedAll(ctx, before, contexts, gone)
	if err != nil {
		return false, err
	}
	if head, err := s.engine.Head(ctx); err != nil || head.Number != expected && !last {
		return false, err
	}
	if err := remove(); err != nil {
		return false, err
	}
	ctx = context.WithoutCancel(ctx) // the removal is committed: finish
	if head, err := s.engine.Head(ctx); err != nil || head.Number == expected+1 {
		return true, err
	}
	_, err = s.copyInheritedAll(ctx, before, contexts, gone)
	return true, err
}

// copyInheritedAll copies the overrides of contexts, as they were before, to their forks. It
// returns the number that the last commit has if nobody else has committed since.
func (s *Store) copyInheritedAll(ctx context.Context, before backend.Reader, contexts chosenContexts, gone ThreadID) (last uint64, err error) {
	head, err := before.Head(ctx)
	if err != nil {
		return 0, err
	}
	last = head.Number
	for c, err := range contexts(ctx, before) {
		if err != nil {
			return 0, err
		}
		changed, err := s.copyInherited(ctx, before, c.ID, gone)
		if err != nil {
			return 0, err
		}
		last += changed
	}
	return last, nil
}

// copyInherited copies the overrides in force for a context to its forks, except to those in the
// thread gone. It returns how many forks it changed.
func (s *Store) copyInherited(ctx context.Context, before backend.Reader, id ContextID, gone ThreadID) (changed uint64, err error) {
	var inherited *Overrides // read once: the cost grows with the nesting depth
	for child, err := range s.engine.Children(ctx, id, structure.ContextID{}) {
		if err != nil {
			return changed, err
		}
		if !gone.IsZero() && child.Thread == gone {
			continue
		}
		if inherited == nil {
			o, err := effective(ctx, before, id)
			if err != nil {
				return changed, err
			}
			if o.IsZero() {
				return 0, nil // no child inherits anything
			}
			inherited = &o
		}
		is := child.Context
		if is.Overrides = withInherited(is.Overrides, *inherited); structure.Equal(&is, &child.Context) {
			continue
		}
		fork := &Context{store: s, id: child.ID}
		err := fork.Update(ctx, func(is *ContextInfo) error {
			is.Overrides = withInherited(is.Overrides, *inherited)
			return nil
		})
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

// Effective returns the overrides in force: the context's own and, for those not set, those of the
// nearest ancestor that sets them. Overrides.JSON is merged as a JSON merge patch (RFC 7386): null
// removes an inherited key. The cost grows with the nesting depth.
func (c *Context) Effective(ctx context.Context) (Overrides, error) {
	return effective(ctx, c.store.engine, c.id)
}

func effective(ctx context.Context, from backend.Reader, of ContextID) (Overrides, error) {
	var o Overrides
	var settings [][]byte // own first, then the parents'
	seen := make(map[ContextID]bool)
	for id := of; !id.IsZero() && !seen[id]; {
		seen[id] = true
		state, err := from.Context(ctx, id)
		if isNotFound(err) && id != of {
			break // the parent was deleted
		}
		if err != nil {
			return Overrides{}, err
		}
		if o.SystemPrompt == nil {
			o.SystemPrompt = state.Overrides.SystemPrompt
		}
		if o.Model == nil {
			o.Model = state.Overrides.Model
		}
		if state.Overrides.JSON != nil {
			settings = append(settings, state.Overrides.JSON)
		}
		id = state.Parent
	}
	for _, patch := range slices.Backward(settings) {
		o.JSON = mergeSettings(rawjson.MergePatch, o.JSON, patch)
	}
	return o.Clone(), nil
}

// withInherited returns own overrides completed with inherited ones.
func withInherited(own, inherited Overrides) Overrides {
	if own.SystemPrompt == nil {
		own.SystemPrompt = inherited.SystemPrompt
	}
	if own.Model == nil {
		own.Model = inherited.Model
	}
	switch {
	case own.JSON == nil:
		own.JSON = inherited.JSON
	case inherited.JSON != nil:
		own.JSON = mergeSettings(rawjson.JoinPatch, inherited.JSON, own.JSON)
	}
	return own
}

// mergeSettings merges JSON. Settings that are not JSON, which imports may contain, are not merged:
// own wins.
func mergeSettings(merge func(document, patch []byte) []byte, inherited, own []byte) []byte {
	if !json.Valid(own) || len(inherited) > 0 && !json.Valid(inherited) {
		return own
	}
	return merge(inherited, own)
}
