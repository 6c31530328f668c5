package chat

import (
	"context"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// LoadingContext is a context of a chat that was loaded, as it was elsewhere.
type LoadingContext struct {
	ID lineage.ContextID
	// Parent is the context that it was forked or spawned from, if any.
	Parent lineage.ContextID
	ChatID string
	// Base and Tip are the messages that it started at and points to.
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
	s := latest(store)
	t, err := s.mustThread(ctx, l.ChatID)
	if err != nil {
		return false, err
	}
	return s.updateAt(ctx, t.UpdatedAt, func(in *state) error { // nobody changes the chat now
		t, err := in.mustThread(ctx, l.ChatID)
		if err != nil {
			return err
		}
		return in.loadContext(ctx, t, &l)
	})
}

func (s *state) loadContext(ctx context.Context, t *structure.Thread, l *LoadingContext) error {
	base, err := s.position(ctx, t, l.Base)
	if err != nil {
		return err
	}
	tip, err := s.position(ctx, t, l.Tip)
	if err != nil {
		return err
	}
	known, err := s.from.Context(ctx, l.ID)
	switch {
	case isNotFound(err):
		return s.newContext(ctx, l, t.ID, base, tip)
	case err != nil:
		return err
	case known.Thread != t.ID:
		return &Error{Subject: "context", ID: l.ID.String(), ChatID: l.ChatID, Err: ErrOtherChat}
	}
	if known.Overrides.IsZero() && !l.Overrides.IsZero() {
		// As they are, be they JSON or not.
		if _, err := write.Of(s.store).Make(ctx, func(b *write.Batch, _ write.Try) error {
			is := known.Context
			is.Overrides = l.Overrides
			b.StateContext(is)
			return nil
		}); err != nil {
			return err
		}
	}
	forward, err := structure.IsAncestor(known.Tip, tip, s.runs(ctx))
	if err != nil || !forward {
		return err
	}
	return s.move(ctx, &known, tip, "load")
}

// newContext makes a context that is not there.
func (s *state) newContext(ctx context.Context, l *LoadingContext, thread structure.ThreadID, base, tip structure.SpanRef) error {
	is := write.Context{
		ID: l.ID, Thread: thread, At: base, Overrides: l.Overrides, Metadata: l.Metadata, CreatedAt: time.UnixMilli(l.CreatedAt).UTC(),
	}
	if !l.Parent.IsZero() {
		if _, err := s.from.Context(ctx, l.Parent); err == nil {
			is.Parent = l.Parent
		} else if !isNotFound(err) {
			return err
		}
	}
	_, err := write.Of(s.store).Make(ctx, func(b *write.Batch, _ write.Try) error {
		if b.NewContext(is); tip != base {
			b.Point(l.ID, tip)
		}
		return nil
	})
	return err
}
