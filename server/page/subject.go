package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
)

// subject is the history in a thread that a view is about.
type subject struct {
	Thread *lineage.Thread `json:"-"`
	Info   lineage.ThreadInfo
	// ID is the thread's id. Context is the context's id, empty for the history of a message. In is the value of ?in=
	// in addresses, empty for the active branch.
	ID, Context, In       string
	Title, Agent, Project string
	// Cost is the displayed cost of the thread, or empty if it is unknown. Pending is set if it is going to change without
	// a change of the store.
	Cost    string
	Pending bool
	Branch  string
	Tip     lineage.SpanRef
	Resume  string
	// base is the message after which the context was forked, or zero.
	base lineage.SpanRef

	prefix string // of the anchors of its messages, in views of two histories
}

// Href returns the address of a position of the history.
func (p *subject) Href(position uint64) string {
	q := url.Values{}
	if p.In != "" {
		q.Set("in", p.In)
	}
	anchor := ""
	if position > 0 {
		q.Set("at", strconv.FormatUint(position, 10))
		anchor = fmt.Sprintf("#m%d", position)
	}
	if len(q) == 0 {
		return "/t/" + p.ID + anchor
	}
	return "/t/" + p.ID + "?" + q.Encode() + anchor
}

// threadOf returns the thread that a request names.
func (p *Page) threadOf(r *http.Request) (*lineage.Thread, error) {
	id, err := structure.ParseID[lineage.ThreadID](r.PathValue("thread"))
	if err != nil {
		return nil, fmt.Errorf("thread %.60q: %w", r.PathValue("thread"), lineage.ErrNotFound)
	}
	return p.o.Store.Thread(r.Context(), id)
}

// subjectOf returns the history that a request names: that of the context, branch or message in, or else of the active branch.
func (p *Page) subjectOf(r *http.Request, in string) (*subject, error) {
	ctx := r.Context()
	t, err := p.threadOf(r)
	if err != nil {
		return nil, err
	}
	info, err := t.Info(ctx)
	if err != nil {
		return nil, err
	}
	found := &subject{Thread: t, Info: info, ID: info.ID.String(), In: in, Agent: states(&info, archive.KeyAgent), Project: states(&info, archive.KeyProject)}
	found.Resume = "lineage resume " + info.ID.Short()
	if found.Title, err = p.title(ctx, &info); err != nil {
		return nil, err
	}
	found.Pending = p.costsPending(ctx)
	if p.o.Cost != nil {
		found.Cost = p.o.Cost(info.ID)
	}
	if ref, err := structure.ParseSpanRef(in); err == nil && !ref.IsZero() {
		found.Tip = ref
		return found, p.belongs(ctx, t, ref)
	}
	id, isName, err := contextIn(ctx, t, &info, in)
	if err != nil {
		return nil, err
	}
	if isName {
		found.In = id.String() // the name can be given to another branch
	}
	if id.IsZero() {
		return found, nil
	}
	c, err := p.o.Store.Context(ctx, id)
	if err != nil {
		if in == "" && errors.Is(err, lineage.ErrNotFound) { // the active branch was deleted
			return found, nil
		}
		return nil, err
	}
	about, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	if about.Thread != info.ID {
		return nil, fmt.Errorf("context %v is of another thread: %w", id, lineage.ErrNotFound)
	}
	found.Context, found.Branch, found.Tip, found.base = id.String(), about.Branch, about.Tip, about.Base
	if found.Branch == "" {
		found.Branch = string(graph.KindOf(&about)) + " " + id.Short()
	}
	return found, nil
}

// contextIn returns the context of a thread that a request names by its id or as a branch, the active one if it names none.
func contextIn(ctx context.Context, t *lineage.Thread, info *lineage.ThreadInfo, in string) (id lineage.ContextID, isName bool, err error) {
	if in == "" {
		return info.Active, false, nil
	}
	if id, err := structure.ParseID[lineage.ContextID](in); err == nil {
		return id, false, nil
	}
	branch, err := t.Branch(ctx, in)
	if err != nil {
		return id, true, fmt.Errorf("in %.60q: %w", in, err)
	}
	return branch.Context, true, nil
}

// belongs returns an error unless the message is in a history of the thread.
func (p *Page) belongs(ctx context.Context, t *lineage.Thread, ref lineage.SpanRef) error {
	reach, err := p.reach(ctx, t)
	if err != nil {
		return err
	}
	if !reach.Has(ref) {
		return fmt.Errorf("message %v of thread %v: %w", ref, t.ID(), lineage.ErrNotFound)
	}
	return nil
}

// reach returns the set of messages in the histories of a thread.
func (p *Page) reach(ctx context.Context, t *lineage.Thread) (backend.Reach, error) {
	state, err := p.o.Store.View().Thread(ctx, t.ID())
	if err != nil {
		return nil, err
	}
	return backend.ReachOf(ctx, p.o.Store.View(), state)
}

// positionOf returns a position from a query, or 0.
func positionOf(r *http.Request, key string) (uint64, error) {
	text := r.URL.Query().Get(key)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, notPosition(text)
	}
	return n, nil
}

// title returns the displayed title of a conversation.
func (p *Page) title(ctx context.Context, info *lineage.ThreadInfo) (string, error) {
	title, err := p.o.Store.ShownTitle(ctx, *info)
	return shortTitle(title), err
}

func shortTitle(title string) string { return short(cmp.Or(title, transcript.Untitled), 160) }

// contextOf returns the context of a subject, which must have one.
func (p *Page) contextOf(ctx context.Context, subject *subject) (*lineage.Context, error) {
	id, err := structure.ParseID[lineage.ContextID](subject.Context)
	if err != nil {
		return nil, err
	}
	return p.o.Store.Context(ctx, id)
}
