package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/server/problem"
	"github.com/lineage-store/lineage/structure"
)

// within is a store as a caller may see it, possibly inside a transaction.
type within struct {
	store  *lineage.Store
	caller *access.Caller
	// outside and outer are the store and the context outside of the transaction.
	outside *lineage.Store
	outer   context.Context
	// handles is nil in a transaction, which has handles of its own.
	handles *handles
	// made is what earlier operations in the transaction have made.
	made []made
}

// notFound returns the error for something that does not exist, or that the caller may not see. The two cannot be
// distinguished.
func notFound(what, name string) error {
	return fmt.Errorf("%s %.100q: %w", what, name, lineage.ErrNotFound)
}

// sourceMark precedes the source id of a thread that is used instead of its id.
const sourceMark = "="

// thread returns a thread by name: its id, or = and its source id, or # and the number of the operation of this
// request that created it.
func (w *within) thread(ctx context.Context, name string) (*lineage.Thread, error) {
	var t *lineage.Thread
	var err error
	if before := w.before(name); before != nil {
		name = before.Thread
	}
	if key, ok := strings.CutPrefix(name, sourceMark); ok {
		t, err = w.caller.Scope.FindThread(ctx, w.store, key)
	} else {
		id, parsed := structure.ParseID[lineage.ThreadID](name)
		if parsed != nil {
			return nil, notFound("thread", name)
		}
		if t, err = w.store.Thread(ctx, id); err == nil {
			err = w.caller.Scope.Check(ctx, t)
		}
	}
	if errors.Is(err, lineage.ErrNotFound) {
		return nil, notFound("thread", name)
	}
	return t, err
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

// before returns what an earlier operation of this request made, given its name: # and the number of the operation. It is nil
// for another name.
func (w *within) before(name string) *made {
	digits, ok := strings.CutPrefix(name, "#")
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n >= len(w.made) {
		return nil
	}
	return &w.made[n]
}

// of identifies a context, in a path or as members of an operation.
type of struct {
	Thread  string `json:"thread,omitempty" path:"thread" doc:"the id of the thread, or = and the source id"`
	Context string `json:"context,omitempty" path:"context" doc:"@ for the active branch, the name of a branch, or the id of a context; without a thread its id"`
}

// context returns the context that o identifies. Span is its tip.
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

// destination is a context that is extended.
type destination struct {
	*contextHandle
	thread lineage.ThreadID // zero outside threads
	branch string
}

// destination returns the context that o identifies. Its tip is not looked up, because the append does that.
func (w *within) destination(ctx context.Context, o of) (destination, error) {
	if t, err := w.branch(ctx, o); err == nil || !isGone(err) {
		return t, err
	}
	found, err := w.context(ctx, o)
	if err != nil {
		return destination{}, err
	}
	t := destination{contextHandle: w.handles.of(found.Context), branch: found.Branch}
	if found.Thread != nil {
		t.thread = found.Thread.ID()
	}
	return t, nil
}

// branch returns the context of a branch, by one read if its handle is kept. Only callers that may use the whole store can get one
// without a look at the thread. The error is ErrNotFound if o may be anything else.
func (w *within) branch(ctx context.Context, o of) (t destination, err error) {
	if !w.caller.Scope.All() || o.Thread == "" || o.Context == "" || o.Context == "@" || w.before(o.Thread) != nil || w.before(o.Context) != nil {
		return t, lineage.ErrNotFound
	}
	if key, ok := strings.CutPrefix(o.Thread, sourceMark); ok {
		t.thread = write.SourceThread(key)
	} else if t.thread, err = structure.ParseID[lineage.ThreadID](o.Thread); err != nil {
		return t, lineage.ErrNotFound
	}
	b, err := w.store.View().Branch(ctx, t.thread, o.Context)
	if err != nil {
		return t, err
	}
	t.branch = b.Name
	if t.contextHandle = w.handles.kept(b.Context); t.contextHandle != nil {
		return t, nil
	}
	c, err := w.store.Context(ctx, b.Context)
	if err != nil {
		return t, err
	}
	t.contextHandle = w.handles.of(c)
	return t, nil
}

// named looks up a name in a thread only. A transaction cannot list, which the search for a part of an id requires,
// so such names are looked up outside.
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

// namedOutside looks up a name outside of the transaction, and returns the result for use inside.
func (w *within) namedOutside(ctx context.Context, t *lineage.Thread, find func(context.Context, *refs.Resolver) (*refs.Ref, error)) (*refs.Ref, error) {
	same, err := w.outside.Thread(w.outer, t.ID())
	if err != nil { // the thread was created in this transaction
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

// contextByID returns a context of any thread. Callers with access to the whole store also get contexts without a
// thread.
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
		err = w.caller.Scope.Check(ctx, found.Thread)
	}
	return found, hidden(err, "context", name)
}

// hidden converts an error about something that was not found to notFound, so that the text does not depend on what
// exists.
func hidden(err error, what, name string) error {
	if errors.Is(err, lineage.ErrNotFound) {
		return notFound(what, name)
	}
	return err
}

// position looks up a position in the thread of a context. Steps without a name start at the context. An empty text
// is the context itself.
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
	if at.Thread == nil { // the caller may read the whole store
		return refs.New(w.store, nil).Find(ctx, text)
	}
	return w.named(ctx, at.Thread, func(ctx context.Context, names *refs.Resolver) (*refs.Ref, error) { return names.Find(ctx, text) })
}

// start looks up a position in a thread, and the context to fork from. For a message that is the context of the
// active branch.
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

// isGone reports whether an error says that something does not exist any more.
func isGone(err error) bool { return errors.Is(err, lineage.ErrNotFound) }

// errWhole is the error for requests that concern the whole store.
var errWhole = problem.New(http.StatusForbidden, "not allowed", "the token is for a part of the store")

type ofThread struct {
	Thread string `json:"thread,omitempty" path:"thread" doc:"the id of the thread, or = and the source id"`
}
