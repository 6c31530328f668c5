package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
)

const (
	// window is the number of messages on a page. most is the number of bytes of a text that are displayed.
	window = 100
	most   = 32 << 10
	// maxRead is the number of bytes of bodies that are read for a window, and maxBody that of a single body.
	maxRead = 32 << 20
	maxBody = 8 << 20
	// around is the number of messages before and after a window in which matching calls and results are searched
	// for.
	around = 32
	// highlighting is the time limit for highlighting the code in a window. Highlighted code is cached.
	highlighting = 2 * time.Second
	// beside is the number of branches and subagents listed beside a conversation.
	beside = 60
)

// conversationView is a window of a history.
type conversationView struct {
	*place
	Messages []*render.Message
	// From and To are the positions of the window. Length is the length of the history.
	From, To, Length uint64
	// At is the position of the requested message, or 0.
	At        uint64
	Branches  []*besideRow
	Subagents []*besideRow
	// More is set if there are more branches than listed.
	More    bool
	Prompts []*render.Message
	Notice  string
	// Graph is the part of the graph around the window, or nil if the graph has nothing but this history.
	Graph *graphView

	subagents []*subagent
}

// besideRow is another context of the thread.
type besideRow struct {
	Name, Href string
	Here       bool
}

// place is a history in a thread, the subject of a view.
type place struct {
	Thread *lineage.Thread `json:"-"`
	Info   lineage.ThreadInfo
	// ID is the thread's id. Context is the context's id, empty for the history of a message. In is the value of ?in=
	// in addresses, empty for the active branch.
	ID, Context, In       string
	Title, Agent, Project string
	Branch                string
	Tip                   lineage.SpanRef
	Resume                string
	// base is the message after which the context was forked, or zero.
	base lineage.SpanRef

	prefix string // of the anchors of its messages, in views of two histories
}

// Href returns the address of a position of the history.
func (p *place) Href(position uint64) string {
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

// placeOf returns the history that a request names: that of the context or message in, or else of the active branch.
func (p *Page) placeOf(r *http.Request, in string) (*place, error) {
	ctx := r.Context()
	t, err := p.threadOf(r)
	if err != nil {
		return nil, err
	}
	info, err := t.Info(ctx)
	if err != nil {
		return nil, err
	}
	is := &place{Thread: t, Info: info, ID: info.ID.String(), In: in, Agent: states(&info, archive.KeyAgent), Project: states(&info, archive.KeyProject)}
	is.Resume = "lineage resume " + info.ID.Short()
	if is.Title, err = p.title(ctx, &info); err != nil {
		return nil, err
	}
	if ref, err := structure.ParseSpanRef(in); err == nil && !ref.IsZero() {
		is.Tip = ref
		return is, p.belongs(ctx, t, ref)
	}
	id := info.Active
	if in != "" {
		if id, err = structure.ParseID[lineage.ContextID](in); err != nil {
			return nil, fmt.Errorf("in %.60q: %w", in, lineage.ErrNotFound)
		}
	}
	if id.IsZero() {
		return is, nil
	}
	c, err := p.o.Store.Context(ctx, id)
	if err != nil {
		if in == "" && errors.Is(err, lineage.ErrNotFound) { // the active branch was deleted
			return is, nil
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
	is.Context, is.Branch, is.Tip, is.base = id.String(), about.Branch, about.Tip, about.Base
	if is.Branch == "" {
		is.Branch = string(graph.KindOf(&about)) + " " + id.Short()
	}
	return is, nil
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

func (p *Page) conversation(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	at, err := positionOf(r, "at")
	if err != nil {
		return err
	}
	from, err := positionOf(r, "from")
	if err != nil {
		return err
	}
	to, err := positionOf(r, "to")
	if err != nil {
		return err
	}
	is, err := p.placeOf(r, r.URL.Query().Get("in"))
	if err != nil {
		return err
	}
	v := &conversationView{place: is, Notice: r.URL.Query().Get("did")}
	if v.Length, err = p.o.Store.Position(ctx, is.Tip); err != nil {
		return err
	}
	if to := r.URL.Query().Get("prompt"); to != "" { // the next or previous one, or if there is none the message itself
		found, err := p.outlines.prompt(ctx, is.Tip, v.Length, min(at, v.Length+1), to == "previous")
		if err != nil {
			return err
		}
		at = cmp.Or(found, at)
		v.At = at
	}
	v.From, v.To = windowOf(v.Length, at, from, to)
	if r.URL.Query().Get("part") == "inside" { // a subagent, from its first message on
		return p.inside(w, r, v)
	}
	var items []*transcript.Item
	if items, err = p.items(ctx, is, lineage.Window{From: v.From, To: v.To}, around); err != nil {
		return err
	}
	v.Messages = p.rendered(ctx, is, items)
	if err := p.addRetries(ctx, v); err != nil {
		return err
	}
	if v.subagents, err = p.subagentsOf(ctx, is); err != nil {
		return err
	}
	if err := p.addSubagents(ctx, v, items); err != nil {
		return err
	}
	if r.URL.Query().Has("part") {
		return p.show(w, r, http.StatusOK, "window", &view{Body: v})
	}
	for _, m := range v.Messages {
		if m.Prompt != "" {
			v.Prompts = append(v.Prompts, m)
		}
	}
	if err := p.besides(ctx, v); err != nil {
		return err
	}
	if v.Graph, err = p.besideOf(ctx, is, cmp.Or(at, v.To)); err != nil {
		return err
	}
	return p.show(w, r, http.StatusOK, "conversation", &view{Title: is.Title, Body: v})
}

// windowOf returns the window of a history around at, starting at from, ending at to, or at the end of the history.
func windowOf(length, at, from, to uint64) (first, last uint64) {
	switch {
	case from > 0:
		first, last = from, from+window-1
	case to > 0:
		last = min(to, length)
		first = last - min(last, window) + 1
	case at > 0:
		at = min(at, length)
		first = max(at-min(at, window/3), 1)
		last = first + window - 1
	default:
		last = length
		first = last - min(last, window) + 1
	}
	return max(first, 1), min(last, length)
}

// messages returns the rendered messages of a window.
func (p *Page) messages(ctx context.Context, is *place, w lineage.Window) ([]*render.Message, error) {
	items, err := p.items(ctx, is, w, 0)
	return p.rendered(ctx, is, items), err
}

// items returns the transcript of a window. Calls are matched with results, and results with calls, up to the given
// number of messages outside of the window.
func (p *Page) items(ctx context.Context, is *place, w lineage.Window, outside uint64) (items []*transcript.Item, err error) {
	if w.From > w.To || is.Tip.IsZero() {
		return nil, nil
	}
	wide := lineage.Window{From: max(w.From, outside+1) - outside, To: w.To + outside}
	for i, err := range transcript.All(p.transcribed(ctx, is.Tip, wide), transcript.Options{MaxText: most}) {
		if err != nil {
			return nil, err
		}
		if i.From != nil && w.From <= i.From.Position && i.From.Position <= w.To {
			items = append(items, i)
		}
	}
	return items, nil
}

func (p *Page) rendered(ctx context.Context, is *place, items []*transcript.Item) []*render.Message {
	all := render.Messages(ctx, items, render.Options{Image: p.imageOf(is.ID), Prefix: is.prefix, Highlighting: highlighting})
	for _, m := range all {
		m.Prompt = words(m.Prompt)
	}
	return all
}

// transcribed yields the entries of a window. If they exceed the number of bytes that are read for a window, the rest
// have only the starts of their texts.
func (p *Page) transcribed(ctx context.Context, tip lineage.SpanRef, w lineage.Window) iter.Seq2[*transcript.Message, error] {
	return func(yield func(*transcript.Message, error) bool) {
		left := int64(maxRead)
		for e, err := range p.o.Store.History(ctx, tip, w) {
			if err != nil {
				yield(nil, err)
				return
			}
			limit := min(left, maxBody)
			if e.Size <= limit {
				left -= e.Size
			}
			if m, err := p.o.Store.Transcribe(ctx, e, max(limit, preview)); !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// besides lists the other contexts of the conversation.
func (p *Page) besides(ctx context.Context, v *conversationView) error {
	from := p.o.Store.View()
	branches, err := backend.BranchesByCreation(ctx, from, v.Info.ID)
	if err != nil {
		return err
	}
	for _, b := range branches {
		if len(v.Branches) == beside {
			v.More = true
			break
		}
		row := &besideRow{Name: b.Name, Href: (&place{ID: v.ID, In: b.Context.String()}).Href(0), Here: b.Context.String() == v.Context}
		if b.Context == v.Info.Active {
			row.Href = (&place{ID: v.ID}).Href(0)
		}
		v.Branches = append(v.Branches, row)
	}
	return p.listSubagents(ctx, v)
}
