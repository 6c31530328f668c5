package lineage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

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
	// SourceID, when not empty, is an id chosen by the caller, unique in the store. The context gets the id that
	// SourceBranch returns for it. If that is taken, the error is ErrExists.
	SourceID  string
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
		made := write.Context{Overrides: o.Overrides, Metadata: o.Metadata}
		if o.SourceID != "" {
			made.ID = SourceBranch(o.SourceID)
			_, err := s.engine.Context(ctx, made.ID)
			if err == nil {
				return subjectError("context", o.SourceID, ErrExists, "")
			}
			if !errors.Is(err, ErrNotFound) {
				return err
			}
			b.ExpectContext(made.ID, nil)
		}
		id = b.NewContext(made).ID
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
		changed := state.Context
		changed.Overrides, changed.Metadata = info.Overrides, info.Metadata
		if err := checkChanged("context", c.id.String(), "overrides", state.Overrides.JSON, changed.Overrides.JSON); err != nil {
			return err
		}
		if err := checkChanged("context", c.id.String(), "metadata", state.Metadata, changed.Metadata); err != nil {
			return err
		}
		if !structure.Equal(&state.Context, &changed) {
			b.ExpectContext(c.id, &state.Context)
			b.StateContext(changed)
		}
		return nil
	})
}

// Delete deletes the context. The context of a branch must be deleted with DeleteBranch; here it is ErrConflict.
// Forks of the context remain. They continue to inherit its overrides, but not its values. Its summaries are deleted.
// The next Collect frees the disk space.
func (c *Context) Delete(ctx context.Context) error {
	state, err := c.store.engine.Context(ctx, c.id)
	if err != nil {
		return err
	}
	if state.Thread.IsZero() {
		return c.store.change(ctx, func(b *write.Batch, _ write.Try) error {
			b.DeleteContext(c.id)
			return nil
		})
	}
	// The thread is changed too, so that its UpdatedAt does not depend on which context moved last.
	return (&Thread{store: c.store, id: state.Thread}).change(ctx, func(b *write.Batch, t *structure.Thread) error {
		named, err := backend.BranchOf(ctx, c.store.engine, t.ID, c.id)
		if err != nil {
			return err
		}
		if named != nil {
			return subjectError("context", c.id.String(), ErrConflict, fmt.Sprintf("it is branch %q", named.Name))
		}
		b.DeleteContext(c.id)
		if t.Active == c.id {
			t.Active = ContextID{}
		}
		return nil
	})
}

// Effective returns the overrides in force: the context's own and, for those not set, those of the
// nearest ancestor that sets them, deleted or not. Overrides.JSON is merged as a JSON merge patch (RFC
// 7386): null removes an inherited key. The cost grows with the nesting depth.
func (c *Context) Effective(ctx context.Context) (Overrides, error) {
	return backend.AtOnce(ctx, c.store.engine, func(from backend.Snapshot) (Overrides, error) { return effective(ctx, from, c.id) })
}

func effective(ctx context.Context, from backend.Reader, id ContextID) (Overrides, error) {
	var o Overrides
	var settings [][]byte // own first, then those of the ancestors
	for a, err := range backend.Ancestors(ctx, from, id) {
		if err != nil {
			return Overrides{}, err
		}
		o.SystemPrompt, o.Model = cmp.Or(o.SystemPrompt, a.Overrides.SystemPrompt), cmp.Or(o.Model, a.Overrides.Model)
		if a.Overrides.JSON != nil {
			settings = append(settings, a.Overrides.JSON)
		}
	}
	for _, patch := range slices.Backward(settings) {
		o.JSON = mergeSettings(o.JSON, patch)
	}
	return o.Clone(), nil
}

// mergeSettings merges JSON. Settings that are not JSON, which imports may contain, are not merged. Then own is
// returned.
func mergeSettings(inherited, own []byte) []byte {
	if !json.Valid(own) || len(inherited) > 0 && !json.Valid(inherited) {
		return own
	}
	return rawjson.MergePatch(inherited, own)
}
