package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/structure"
)

// within is a store as a caller may see it, perhaps inside a transaction.
type within struct {
	store  *lineage.Store
	caller *access.Caller
	// outside and outer are the store and the context outside the transaction.
	outside *lineage.Store
	outer   context.Context
	// made is what the operations before have made, in a transaction.
	made []made
}

// notFound is the error for what is not there, and for what is not for the caller: they cannot be told apart.
func notFound(what, name string) error {
	return fmt.Errorf("%s %.100q: %w", what, name, lineage.ErrNotFound)
}

// sourceMark is before the source id of a thread in place of its id.
const sourceMark = "="

// thread returns the thread that a name stands for: its id, or = and its source id, or # and the number of the operation of
// this request that made it.
func (w *within) thread(ctx context.Context, name string) (*lineage.Thread, error) {
	var t *lineage.Thread
	var err error
	if before := w.before(name); before != nil {
		name = before.Thread
	}
	if key, is := strings.CutPrefix(name, sourceMark); is {
		t, err = w.chosen(ctx, key)
	} else {
		id, parsed := structure.ParseID[lineage.ThreadID](name)
		if parsed != nil {
			return nil, notFound("thread", name)
		}
		if t, err = w.store.Thread(ctx, id); err == nil {
			err = w.allowed(ctx, t)
		}
	}
	if errors.Is(err, lineage.ErrNotFound) {
		return nil, notFound("thread", name)
	}
	return t, err
}

// chosen returns the thread for which the caller, or somebody else, chose an id.
func (w *within) chosen(ctx context.Context, id string) (*lineage.Thread, error) {
	for _, name := range w.caller.Scope.Names(id) {
		t, err := w.store.FindThread(ctx, name)
		if err == nil {
			err = w.allowed(ctx, t)
		}
		if !errors.Is(err, lineage.ErrNotFound) {
			return t, err
		}
	}
	return nil, notFound("thread", id)
}

// threadRecord returns the record of a thread, with its source id as the caller chose it.
func (w *within) threadRecord(ctx context.Context, t *lineage.Thread) (*records.Thread, error) {
	r, err := records.OfThread(ctx, w.store, t)
	if err != nil {
		return nil, err
	}
	r.SourceID = w.caller.Scope.Chosen(r.SourceID)
	return r, nil
}

// allowed returns ErrNotFound for a thread that is not for the caller.
func (w *within) allowed(ctx context.Context, t *lineage.Thread) error {
	if w.caller.Scope.All() {
		return nil
	}
	info, err := t.Info(ctx)
	if err == nil && !w.caller.Scope.Allows(&info) {
		err = notFound("thread", t.ID().String())
	}
	return err
}

// before returns what an operation of this request made, nil for any other name.
func (w *within) before(name string) *made {
	digits, is := strings.CutPrefix(name, "#")
	if !is {
		return nil
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n >= len(w.made) {
		return nil
	}
	return &w.made[n]
}

// of says which context is meant, in a path or as members of an operation.
type of struct {
	Thread  string `json:"thread,omitempty" path:"thread" doc:"the id of the thread, or = and the source id"`
	Context string `json:"context,omitempty" path:"context" doc:"@ for the active branch, the name of a branch, or the id of a context; without a thread its id"`
}

// context returns the context that is meant. Its Span is the tip.
func (w *within) context(ctx context.Context, o of) (*refs.Ref, error) {
	if before := w.before(o.Context); before != nil {
		id, err := before.context()
		if err != nil {
			return nil, fmt.Errorf("context %s: %w", o.Context, err)
		}
		o = of{Context: id}
	}
	if o.Thread == "" {
		return w.contextByID(ctx, o.Context)
	}
	t, err := w.thread(ctx, o.Thread)
	if err != nil {
		return nil, err
	}
	return w.named(ctx, t, func(ctx context.Context, names *refs.Resolver) (*refs.Ref, error) {
		return names.Context(ctx, o.Context)
	})
}

// named finds what a name stands for in a thread alone. A transaction cannot list, as the search for a part of an id does: such
// names are looked up outside.
func (w *within) named(ctx context.Context, t *lineage.Thread, find func(context.Context, *refs.Resolver) (*refs.Ref, error)) (*refs.Ref, error) {
	found, err := find(ctx, refs.New(w.store, t).Alone())
	if w.outside != nil && errors.Is(err, lineage.ErrInvalid) {
		found, err = w.namedOutside(ctx, t, find)
	}
	if err == nil {
		found.Thread = t
	}
	return found, err
}

// namedOutside finds what a name stands for outside the transaction, and returns it for the transaction.
func (w *within) namedOutside(ctx context.Context, t *lineage.Thread, find func(context.Context, *refs.Resolver) (*refs.Ref, error)) (*refs.Ref, error) {
	same, err := w.outside.Thread(w.outer, t.ID())
	if err != nil { // it was made in this transaction
		return nil, hidden(err, "name", "")
	}
	found, err := find(w.outer, refs.New(w.outside, same).Alone())
	if err != nil || found.Context == nil {
		return found, err
	}
	if found.Context, err = w.store.Context(ctx, found.Context.ID()); err == nil && !found.Moved {
		found.Span, err = found.Context.Tip(ctx)
	}
	return found, err
}

// contextByID returns a context of any thread, or of none for those who may use the whole store.
func (w *within) contextByID(ctx context.Context, name string) (*refs.Ref, error) {
	id, err := structure.ParseID[lineage.ContextID](name)
	if err != nil {
		return nil, notFound("context", name)
	}
	c, err := w.store.Context(ctx, id)
	if err != nil {
		return nil, hidden(err, "context", name)
	}
	info, err := c.Info(ctx)
	if err != nil {
		return nil, hidden(err, "context", name)
	}
	found := &refs.Ref{Text: name, Context: c, Branch: info.Branch, Span: info.Tip}
	if info.Thread.IsZero() {
		if !w.caller.Scope.All() {
			return nil, notFound("context", name)
		}
		return found, nil
	}
	if found.Thread, err = w.store.Thread(ctx, info.Thread); err == nil {
		err = w.allowed(ctx, found.Thread)
	}
	return found, hidden(err, "context", name)
}

// hidden returns an error, ErrNotFound in the same words whatever was not found.
func hidden(err error, what, name string) error {
	if errors.Is(err, lineage.ErrNotFound) {
		return notFound(what, name)
	}
	return err
}

// position returns what a text stands for in the thread of a context. Steps without a name begin at the context, and an
// empty text is the context itself.
func (w *within) position(ctx context.Context, at *refs.Ref, text string) (*refs.Ref, error) {
	if text == "" {
		return at, nil
	}
	if before := w.before(text); before != nil {
		name, err := before.position()
		if err != nil {
			return nil, fmt.Errorf("position %s: %w", text, err)
		}
		text = name
	}
	if strings.HasPrefix(text, "~") || strings.HasPrefix(text, ":") || strings.HasPrefix(text, "@{") {
		text = at.Context.ID().String() + text
	}
	if at.Thread == nil { // of a caller that may read the whole store
		return refs.New(w.store, nil).Find(ctx, text)
	}
	return w.named(ctx, at.Thread, func(ctx context.Context, names *refs.Resolver) (*refs.Ref, error) { return names.Find(ctx, text) })
}

// start returns the position that a text stands for in a thread, and the context to fork for it: the active branch for a
// message.
func (w *within) start(ctx context.Context, t *lineage.Thread, text string) (from *lineage.Context, at lineage.SpanRef, err error) {
	if before := w.before(text); before != nil {
		name, err := before.position()
		if err != nil {
			return nil, at, fmt.Errorf("position %s: %w", text, err)
		}
		text = name
	}
	found, err := w.named(ctx, t, func(ctx context.Context, names *refs.Resolver) (*refs.Ref, error) { return names.Find(ctx, text) })
	if err != nil {
		return nil, at, err
	}
	if found.Context == nil {
		active, err := w.context(ctx, of{Thread: t.ID().String(), Context: "@"})
		if err != nil {
			return nil, at, err
		}
		found.Context = active.Context
	}
	return found.Context, found.Span, nil
}
