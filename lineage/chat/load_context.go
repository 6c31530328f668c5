package chat

import (
	"context"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// LoadingContext is a context of a chat that was loaded, as it was elsewhere.
type LoadingContext struct {
	ID lineage.ContextID
	// Parent is the context that it was forked or spawned from, if any.
	Parent lineage.ContextID
	ChatID string
	// Base and Tip are the messages that it started at and stands at.
	Base, Tip Ref
	Overrides lineage.Overrides
	// Metadata is JSON, nil when absent.
	Metadata []byte
	// CreatedAt is in Unix milliseconds.
	CreatedAt int64
}

// LoadContext brings a context into a store that has its chat, and reports whether
// anything changed. One that is there only gets overrides that it has none of, and
// moves on along its history. A parent that is not there is left out.
func LoadContext(ctx context.Context, store *lineage.Store, l LoadingContext) (changed bool, err error) {
	s := &onStore{store: store, engine: store.Engine()}
	return s.loadContext(ctx, &l)
}

func (s *onStore) loadContext(ctx context.Context, l *LoadingContext) (bool, error) {
	for {
		changed, err := s.loadContextOnce(ctx, l)
		if !isRace(err) && !isTipMoved(err) {
			return changed, err
		}
	}
}

func (s *onStore) loadContextOnce(ctx context.Context, l *LoadingContext) (changed bool, err error) {
	t, err := s.threadNow(ctx, l.ChatID)
	if err != nil {
		return false, err
	}
	id := t.ID
	base, err := s.position(ctx, id, l.ChatID, l.Base)
	if err != nil {
		return false, err
	}
	tip, err := s.position(ctx, id, l.ChatID, l.Tip)
	if err != nil {
		return false, err
	}
	known, err := s.engine.Context(ctx, l.ID)
	if err != nil && !isNotFound(err) {
		return false, err
	}
	var is structure.Context
	o := asIs(t)
	if isNotFound(err) {
		is = structure.Context{
			ID: l.ID, Thread: id, Base: base, Tip: tip, Overrides: l.Overrides, Metadata: l.Metadata, CreatedAt: time.UnixMilli(l.CreatedAt).UTC(),
		}
		if !l.Parent.IsZero() {
			_, err := s.engine.Context(ctx, l.Parent)
			if err == nil {
				is.Parent = l.Parent
			} else if !isNotFound(err) {
				return false, err
			}
		}
	} else {
		if known.Thread != id {
			return false, &Error{Subject: "context", ID: l.ID.String(), ChatID: l.ChatID, Err: ErrOtherChat}
		}
		is = known.Context
		runs := func(id structure.RunID) (structure.RunInfo, error) { return s.engine.Run(ctx, id) }
		forward, err := structure.IsAncestor(known.Tip, tip, runs)
		if err != nil {
			return false, err
		}
		hasNone := is.Overrides.SystemPrompt == nil && is.Overrides.Model == nil && is.Overrides.JSON == nil
		gets := hasNone && (l.Overrides.SystemPrompt != nil || l.Overrides.Model != nil || l.Overrides.JSON != nil)
		if !gets && (!forward || known.Tip == tip) {
			return false, nil
		}
		if gets {
			is.Overrides = l.Overrides
		}
		if forward {
			is.Tip = tip
		}
		o.Tips = []backend.Expect{{Context: l.ID, Tip: known.Tip}}
	}
	// It is no change of the chat that anybody made now.
	o.Durability = backend.Normal
	_, err = s.engine.Apply(ctx, &structure.Commit{Time: t.UpdatedAt, Records: []structure.Record{&is}}, o)
	return err == nil, err
}
