// Package refs finds what people mean by the names they write: branches,
// checkpoints, ids or the beginning or end of one, and steps from there.
//
//	main          the branch of the current thread; so is its active branch @
//	start         the checkpoint
//	other/main    the branch of another thread
//	3f9ac2d1      the context whose id begins or ends so, or whose short form begins so
//	3f9ac2d1/12   the message at a place of a run, as it is shown
//	msg-7         the message with that source id
//	main~2        two messages back; so is main@{2}
//	main:3        the third message
//	main@{-1}     the tip of the branch before its last move
//
// Steps can be written without a name, for the active branch: @{1}, :3.
package refs

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// New returns a resolver for names as used in thread, which may be nil.
func New(store *lineage.Store, thread *lineage.Thread) *Resolver {
	return &Resolver{store: store, view: store.View(), thread: thread, find: store.FindThread}
}

// inside returns a resolver for names as used in another thread.
func (r *Resolver) inside(t *lineage.Thread) *Resolver {
	return &Resolver{store: r.store, view: r.view, thread: t, allows: r.allows, find: r.find, alone: r.alone, kept: r.kept}
}

// Ref is the meaning of a name: a position, and usually a context with that position.
type Ref struct {
	Text string
	// Thread is the thread that it was found in, nil if it is in none.
	Thread *lineage.Thread
	// Context is nil for a checkpoint, and for a message that was named by its id.
	Context *lineage.Context
	// Branch is the name of the context, if it has one. Checkpoint is set if the name is that of a checkpoint.
	Branch, Checkpoint string
	// Span is the position; zero for an empty context.
	Span lineage.SpanRef
	// Index is the place in the span.
	Index int
	// Moved is set when steps lead away from the tip of the context.
	Moved bool
}

// Find returns the meaning of a name.
func (r *Resolver) Find(ctx context.Context, text string) (*Ref, error) {
	found, steps, err := find(ctx, text, r.named, r.names)
	if err != nil {
		return nil, err
	}
	return r.walk(ctx, found, text, steps)
}

// find returns the meaning of the name in a text, and the steps after the name. named returns nil for an unknown
// name, and names lists the possible names.
func find[R any](
	ctx context.Context, text string, named func(context.Context, string) (*R, error), names func(context.Context) ([]string, error),
) (*R, []step, error) {
	name, steps := text, []step(nil)
	for {
		found, err := named(ctx, name)
		if found != nil || err != nil {
			return found, steps, err
		}
		before, s, ok := cutStep(name)
		if !ok {
			break
		}
		name, steps = before, append([]step{s}, steps...)
	}
	near, err := names(ctx)
	if err != nil {
		return nil, nil, err
	}
	return nil, nil, Unknown("name", name, near)
}

// Context returns the context that a name stands for.
func (r *Resolver) Context(ctx context.Context, text string) (*Ref, error) {
	found, err := r.Find(ctx, text)
	if err != nil {
		return nil, err
	}
	if found.Context == nil || found.Moved {
		return nil, &KindError{Text: text, Want: "a context or branch"}
	}
	return found, nil
}

// KindError reports that a name stands for the wrong kind of thing. It matches lineage.ErrInvalid.
type KindError struct{ Text, Want string }

func (e *KindError) Error() string {
	return fmt.Sprintf("%q stands for a message, and %s is needed", shorten(e.Text), e.Want)
}

func (e *KindError) Unwrap() error { return lineage.ErrInvalid }

// Hint suggests what to do.
func (e *KindError) Hint() string {
	return "'lineage fork " + e.Text + "' makes a context there"
}

// named returns the meaning of a name without steps, or nil.
func (r *Resolver) named(ctx context.Context, name string) (*Ref, error) {
	for _, find := range []func(context.Context, string) (*Ref, error){
		r.active, r.inThread, r.byID, r.inOtherThread,
	} {
		if found, err := find(ctx, name); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

func (r *Resolver) active(ctx context.Context, name string) (*Ref, error) {
	if name != "" && name != "@" {
		return nil, nil
	}
	if r.thread == nil {
		return nil, &NoThreadError{"store"}
	}
	branch, err := r.thread.Branch(ctx, "")
	if err != nil {
		return nil, err
	}
	return r.branch(ctx, r.thread, branch.Name, branch.Context)
}

func (r *Resolver) branch(ctx context.Context, t *lineage.Thread, name string, id lineage.ContextID) (*Ref, error) {
	c, err := r.store.Context(ctx, id)
	if err != nil {
		return nil, err
	}
	tip, err := c.Tip(ctx)
	if err != nil {
		return nil, err
	}
	return &Ref{Thread: t, Context: c, Branch: name, Span: tip}, nil
}

// inThread finds branches, checkpoints and messages of the current thread.
func (r *Resolver) inThread(ctx context.Context, name string) (*Ref, error) {
	if r.thread == nil {
		return nil, nil
	}
	return r.in(ctx, r.thread, name)
}

func (r *Resolver) in(ctx context.Context, t *lineage.Thread, name string) (*Ref, error) {
	b, err := orNone(r.view.Branch(ctx, t.ID(), name))
	if err != nil {
		return nil, err
	}
	if b != nil {
		return r.branch(ctx, t, name, b.Context)
	}
	c, err := orNone(r.view.Checkpoint(ctx, t.ID(), name))
	if err != nil {
		return nil, err
	}
	if c != nil {
		return &Ref{Thread: t, Checkpoint: name, Span: c.Span}, nil
	}
	e, err := orNone(t.Find(ctx, name))
	if e == nil {
		return nil, err
	}
	return &Ref{Thread: t, Span: e.Span, Index: e.Index}, nil
}

func (r *Resolver) byID(ctx context.Context, name string) (*Ref, error) {
	c, err := r.contextByID(ctx, name)
	if err != nil {
		return nil, err
	}
	if c != nil {
		info, err := c.Info(ctx)
		if err != nil {
			return nil, err
		}
		found := &Ref{Context: c, Branch: info.Branch, Span: info.Tip}
		if !info.Thread.IsZero() {
			if found.Thread, err = orNone(r.store.Thread(ctx, info.Thread)); err != nil {
				return nil, err
			}
		}
		return found, nil
	}
	span, ok, err := r.spanByID(ctx, name)
	if err == nil && !ok {
		// A usage other than the first of its span is written with its index after a dot.
		if before, digits, found := cutLast(name, "."); found {
			if n, isNumber := number(digits); isNumber && n < 1<<20 {
				if span, ok, err = r.spanByID(ctx, before); ok {
					return &Ref{Thread: r.thread, Span: span, Index: int(n)}, nil
				}
			}
		}
	}
	if err != nil || !ok {
		return nil, err
	}
	return &Ref{Thread: r.thread, Span: span}, nil
}

// inOtherThread finds THREAD/NAME, and THREAD alone for its active branch.
func (r *Resolver) inOtherThread(ctx context.Context, name string) (*Ref, error) {
	if r.alone {
		return nil, nil
	}
	t, err := r.threadNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	if t != nil {
		return r.inside(t).active(ctx, "")
	}
	for i := strings.LastIndex(name, "/"); i > 0; i = strings.LastIndex(name[:i], "/") {
		t, err := r.threadNamed(ctx, name[:i])
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		return r.in(ctx, t, name[i+1:])
	}
	return nil, nil
}

// walk follows the steps from a position.
func (r *Resolver) walk(ctx context.Context, found *Ref, text string, steps []step) (*Ref, error) {
	found.Text = text
	for _, s := range steps {
		at, err := r.store.Position(ctx, found.Span)
		if err != nil {
			return nil, err
		}
		switch {
		case s.kind == moved:
			found.Span, err = r.before(ctx, found, s)
		case s.n > at:
			return nil, &StepError{Text: text, Step: s.text, Length: at}
		case s.kind == back:
			found.Span, err = r.store.At(ctx, found.Span, at-s.n)
		default:
			found.Span, err = r.store.At(ctx, found.Span, s.n)
		}
		if err != nil {
			return nil, err
		}
		found.Moved, found.Index = true, 0
	}
	return found, nil
}

// StepError reports that a history is too short for a step. It matches
// lineage.ErrNotFound.
type StepError struct {
	Text, Step string
	Length     uint64
}

func (e *StepError) Error() string {
	return fmt.Sprintf("%q: %s leads out of a history of %d messages", shorten(e.Text), e.Step, e.Length)
}

func (e *StepError) Unwrap() error { return lineage.ErrNotFound }

// Hint suggests what to do.
func (e *StepError) Hint() string { return "'lineage log' shows the history with its positions" }

// before returns the tip of a context before its last n moves.
func (r *Resolver) before(ctx context.Context, found *Ref, s step) (lineage.SpanRef, error) {
	if found.Context == nil {
		return lineage.SpanRef{}, &KindError{Text: found.Text, Want: "a context or branch"}
	}
	tips, err := collect(found.Context.Reflog(ctx), func(m lineage.Move) lineage.SpanRef { return m.From })
	if err != nil {
		return lineage.SpanRef{}, err
	}
	if s.n == 0 || s.n > uint64(len(tips)) {
		return lineage.SpanRef{}, fmt.Errorf("%q: it was moved %d times: %w", shorten(found.Text), len(tips), lineage.ErrNotFound)
	}
	tip := tips[uint64(len(tips))-s.n]
	if sees, err := r.Sees(ctx, tip); err != nil || !sees {
		return lineage.SpanRef{}, cmp.Or(err, fmt.Errorf("%q: %w", shorten(found.Text), lineage.ErrNotFound))
	}
	return tip, nil
}

// names returns the possible names in the current thread, and those of the threads.
func (r *Resolver) names(ctx context.Context) ([]string, error) {
	names, err := r.Names(ctx)
	if err != nil {
		return nil, err
	}
	if r.thread != nil {
		contexts, err := collect(r.view.Contexts(ctx, r.thread.ID(), lineage.ContextID{}), func(c backend.Context) string { return Short(c.ID) })
		if err != nil {
			return nil, err
		}
		names = append(names, contexts...)
	}
	threads, err := r.threadNames(ctx, false)
	return append(names, threads...), err
}

// Names returns the names of the branches and checkpoints of the current thread.
func (r *Resolver) Names(ctx context.Context) ([]string, error) {
	if r.thread == nil {
		return nil, nil
	}
	names, err := collect(r.view.Branches(ctx, r.thread.ID(), "", ""), func(b *structure.Branch) string { return b.Name })
	if err != nil {
		return nil, err
	}
	checkpoints, err := r.Checkpoints(ctx)
	return append(names, checkpoints...), err
}

// Checkpoints returns the names of the checkpoints of the current thread.
func (r *Resolver) Checkpoints(ctx context.Context) ([]string, error) {
	if r.thread == nil {
		return nil, nil
	}
	return collect(r.view.Checkpoints(ctx, r.thread.ID(), ""), func(c *structure.Checkpoint) string { return c.Name })
}
