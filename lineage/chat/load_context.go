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
	for changed := false; ; {
		now, err := s.loadContextOnce(ctx, l)
		changed = changed || now
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
	switch {
	case isNotFound(err):
		return s.newContext(ctx, l, t, base, tip)
	case err != nil:
		return false, err
	case known.Thread != id:
		return false, &Error{Subject: "context", ID: l.ID.String(), ChatID: l.ChatID, Err: ErrOtherChat}
	}
	if isNone(known.Overrides) && !isNone(l.Overrides) {
		if changed, err = s.giveOverrides(ctx, l); err != nil {
			return changed, err
		}
	}
	runs := s.runs(ctx)
	forward, err := structure.IsAncestor(known.Tip, tip, runs)
	if err != nil || !forward || known.Tip == tip {
		return changed, err
	}
	o := asIs(t, backend.Expect{Context: l.ID, Tip: known.Tip})
	err = s.bring(ctx, t, &structure.Tip{Context: l.ID, Span: tip}, o)
	return changed || err == nil, err
}

// newContext makes a context that is not there.
func (s *onStore) newContext(ctx context.Context, l *LoadingContext, t *structure.Thread, base, tip structure.SpanRef) (made bool, err error) {
	is := structure.Context{
		ID: l.ID, Thread: t.ID, Base: base, Tip: tip, Overrides: l.Overrides, Metadata: l.Metadata, CreatedAt: time.UnixMilli(l.CreatedAt).UTC(),
	}
	if !l.Parent.IsZero() {
		_, err := s.engine.Context(ctx, l.Parent)
		if err == nil {
			is.Parent = l.Parent
		} else if !isNotFound(err) {
			return false, err
		}
	}
	o := asIs(t)
	o.Contexts = []backend.ExpectContext{{ID: l.ID}}
	err = s.bring(ctx, t, &is, o)
	return err == nil, err
}

// bring commits what is no change of a chat that anybody made now.
func (s *onStore) bring(ctx context.Context, t *structure.Thread, r structure.Record, o backend.Options) error {
	o.Durability = backend.Normal
	_, err := s.engine.Apply(ctx, &structure.Commit{Time: t.UpdatedAt, Records: []structure.Record{r}}, o)
	return err
}

func isNone(o structure.Overrides) bool {
	return !o.Adds(structure.Overrides{})
}

// giveOverrides gives a context those that were loaded, as they are, unless it has got
// some.
func (s *onStore) giveOverrides(ctx context.Context, l *LoadingContext) (gave bool, err error) {
	for {
		was, err := s.engine.Context(ctx, l.ID)
		if err != nil || !isNone(was.Overrides) {
			return false, err
		}
		is := was.Context
		is.Overrides = l.Overrides
		_, err = s.engine.Apply(ctx, &structure.Commit{Time: s.store.Now(), Records: []structure.Record{&is}},
			backend.Options{Contexts: []backend.ExpectContext{{ID: l.ID, Was: &was.Context}}})
		if !isAbout(err, "context", lineage.ErrConflict) {
			return err == nil, err
		}
	}
}
