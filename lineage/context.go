package lineage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/sharing"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Context is a view of a history that can be extended and forked. The value is a
// handle: it holds nothing of the history and may be copied and kept.
type Context struct {
	store *Store
	id    ContextID
	at    atomic.Pointer[dwelling] // where it was extended last
}

// sameStore refuses a context that a caller gives beside another where it is none, or of
// another store, in which its id means something else or nothing.
func (s *Store) sameStore(c *Context) error {
	if c == nil || c.store == nil {
		return fmt.Errorf("no context: %w", ErrInvalid)
	}
	if c.store != s && c.store.engine != s.engine && !sharing.Same(c.store.engine, s.engine) {
		return subjectError("context", c.id.String(), ErrInvalid, "it belongs to another store")
	}
	return nil
}

// ID returns the context's id.
func (c *Context) ID() ContextID { return c.id }

// ContextInfo is a context as it is now.
type ContextInfo struct {
	ID     ContextID
	Thread ThreadID // zero outside of threads
	// Branch is the name of the branch that it is, if any.
	Branch string
	// Parent is the context it was forked or spawned from, else zero.
	Parent ContextID
	// Base is where it started; Tip is where it stands.
	Base, Tip SpanRef
	// Set tells alternatives that were offered together from others, else it is zero: see
	// Alternatives. Entry.Set is that of the alternative that an entry begins.
	Set       structure.SpanSetID
	Overrides Overrides
	Metadata  []byte
	CreatedAt time.Time
	// UpdatedAt is when its tip last moved.
	UpdatedAt time.Time
}

func contextInfo(c *backend.Context) ContextInfo {
	return ContextInfo{
		ID: c.ID, Thread: c.Thread, Parent: c.Parent, Base: c.Base, Tip: c.Tip, Set: c.Set, Overrides: c.Overrides.Clone(),
		Metadata: bytes.Clone(c.Metadata), CreatedAt: c.CreatedAt, UpdatedAt: time.UnixMilli(c.MovedAt).UTC(),
	}
}

// ContextOptions describe a context that starts with an empty history.
type ContextOptions struct {
	Overrides Overrides
	// Metadata is JSON of the caller's, kept byte for byte.
	Metadata []byte
}

// NewContext makes an empty context outside of any thread.
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

// Info returns the context as it is now.
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

// Tip returns where the context stands; the zero ref while it is empty.
func (c *Context) Tip(ctx context.Context) (SpanRef, error) {
	state, err := c.store.engine.Context(ctx, c.id)
	if err != nil {
		return SpanRef{}, err
	}
	return state.Tip, nil
}

// Children yields the contexts that were forked or spawned from this one.
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

// Update changes the overrides and metadata of the context, without losing what another call
// changes at the same time. What change leaves alone stays, and if it leaves everything alone or
// returns an error nothing happens. It may be called more than once, and must not change the
// context itself, which waits for it.
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

// Delete takes the context out of the store. A context that a branch names
// cannot go before its branch does. Contexts that were forked from it stay, with the
// overrides that they inherited now their own; its summaries they lose. What nothing
// else leads to leaves the store's files with the next Collect.
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
	return c.store.bequeath(ctx, one, ThreadID{}, may, func() error {
		if thread.IsZero() {
			return c.store.change(ctx, func(b *write.Batch, _ write.Try) error {
				b.DeleteContext(c.id)
				return nil
			})
		}
		// The thread changes too: it was updated now, whichever of its contexts moved last.
		return (&Thread{store: c.store, id: thread}).change(ctx, func(b *write.Batch, t *structure.Thread) error {
			b.DeleteContext(c.id)
			if t.Active == c.id {
				t.Active = ContextID{}
			}
			return nil
		})
	})
}

// mostBequests is how often contexts that are to be deleted are looked at anew, because
// others made commits meanwhile.
const mostBequests = 3

// mostExpired is how often something is done again because the snapshot expired that it read.
const mostExpired = 10

// chosenContexts yields contexts as a state has them.
type chosenContexts func(context.Context, backend.Reader) iter.Seq2[backend.Context, error]

// bequeath removes contexts, if they may go, and gives those that were forked from them
// what they inherit as their own, but for those in a thread that goes too, if it is not
// zero. It does so before, for what is in force for them must not lapse, and once more
// afterwards if others made commits just then: they may have forked.
func (s *Store) bequeath(ctx context.Context, contexts chosenContexts, gone ThreadID, may, remove func() error) error {
	if err := may(); err != nil {
		return err
	}
	expired := 0
	for try := 1; ; try++ {
		done, err := s.tryToBequeath(ctx, contexts, gone, remove, try == mostBequests)
		if errors.Is(err, ErrExpired) && !done && expired < mostExpired { // nothing is removed yet
			expired++
			try--
			continue
		}
		if err != nil || done {
			return err
		}
	}
}

// tryToBequeath is bequeath, unless others make commits before the contexts are removed
// and it is not the last try.
func (s *Store) tryToBequeath(ctx context.Context, contexts chosenContexts, gone ThreadID, remove func() error, last bool) (done bool, err error) {
	before, err := s.engine.Snapshot(ctx)
	if err != nil {
		return false, err
	}
	defer before.Close()
	expected, err := s.handDownAll(ctx, before, contexts, gone)
	if err != nil {
		return false, err
	}
	if head, err := s.engine.Head(ctx); err != nil || head.Number != expected && !last {
		return false, err
	}
	if err := remove(); err != nil {
		return false, err
	}
	ctx = context.WithoutCancel(ctx) // nobody else can do the rest
	if head, err := s.engine.Head(ctx); err != nil || head.Number == expected+1 {
		return true, err
	}
	_, err = s.handDownAll(ctx, before, contexts, gone)
	return true, err
}

// handDownAll gives what is inherited from contexts, as they were before, to those that
// were forked from them. It returns the number that the last commit has if nobody else
// made one since then.
func (s *Store) handDownAll(ctx context.Context, before backend.Reader, contexts chosenContexts, gone ThreadID) (last uint64, err error) {
	head, err := before.Head(ctx)
	if err != nil {
		return 0, err
	}
	last = head.Number
	for c, err := range contexts(ctx, before) {
		if err != nil {
			return 0, err
		}
		heirs, err := s.handDown(ctx, before, c.ID, gone)
		if err != nil {
			return 0, err
		}
		last += heirs
	}
	return last, nil
}

// handDown gives children of a context what they inherit from it as their own, but for
// those in a thread that goes too. It returns to how many.
func (s *Store) handDown(ctx context.Context, before backend.Reader, id ContextID, gone ThreadID) (heirs uint64, err error) {
	var inherited *Overrides // what it takes to tell grows with how deeply the context is nested
	for child, err := range s.engine.Children(ctx, id, structure.ContextID{}) {
		if err != nil {
			return heirs, err
		}
		if !gone.IsZero() && child.Thread == gone {
			continue
		}
		if inherited == nil {
			o, err := effective(ctx, before, id)
			if err != nil {
				return heirs, err
			}
			if o.IsZero() {
				return 0, nil // nothing: the rest of the children need no look
			}
			inherited = &o
		}
		is := child.Context
		if is.Overrides = endow(is.Overrides, *inherited); structure.Equal(&is, &child.Context) {
			continue
		}
		heir := &Context{store: s, id: child.ID}
		err := heir.Update(ctx, func(is *ContextInfo) error {
			is.Overrides = endow(is.Overrides, *inherited)
			return nil
		})
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return heirs, err
		}
		heirs++
	}
	return heirs, nil
}

// Effective returns the overrides in force: the context's own, and what it does
// not set from the nearest parent that does. Overrides.JSON is merged key by key, as a JSON
// merge patch (RFC 7386): null removes what is inherited. Ancestry is followed through
// parents, so its cost grows with how deeply contexts are nested.
func (c *Context) Effective(ctx context.Context) (Overrides, error) {
	return effective(ctx, c.store.engine, c.id)
}

func effective(ctx context.Context, from backend.Reader, of ContextID) (Overrides, error) {
	var o Overrides
	var settings [][]byte // from the context's own upwards
	seen := make(map[ContextID]bool)
	for id := of; !id.IsZero() && !seen[id]; {
		seen[id] = true
		state, err := from.Context(ctx, id)
		if isNotFound(err) && id != of {
			break // a parent that was deleted has nothing more to give
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

// endow returns overrides that are in force whatever becomes of those that were inherited.
func endow(own, inherited Overrides) Overrides {
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

// mergeSettings merges what is JSON. Other settings, which an import may have brought, replace others
// as they are.
func mergeSettings(merge func(document, patch []byte) []byte, inherited, own []byte) []byte {
	if !json.Valid(own) || len(inherited) > 0 && !json.Valid(inherited) {
		return own
	}
	return merge(inherited, own)
}
