package page

import (
	"cmp"
	"context"
	"net/http"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

func (p *Page) conversation(w http.ResponseWriter, r *http.Request) error {
	ctx, query := r.Context(), r.URL.Query()
	v, at, err := p.window(r)
	if err != nil {
		return err
	}
	if query.Get("part") == "inside" { // a subagent, from its first message on
		return p.inside(w, r, v)
	}
	items, err := p.items(ctx, v.subject, lineage.Window{From: v.From, To: v.To}, around)
	if err != nil {
		return err
	}
	v.Messages = p.rendered(ctx, v.subject, items)
	if err := p.addRetries(ctx, v); err != nil {
		return err
	}
	if v.subagents, err = p.subagentsOf(ctx, v.subject); err != nil {
		return err
	}
	if err := p.addSubagents(ctx, v, items); err != nil {
		return err
	}
	if query.Has("part") {
		return p.show(w, r, http.StatusOK, "window", &pageData{Body: v})
	}
	for _, m := range v.Messages {
		if m.Prompt != "" {
			v.Prompts = append(v.Prompts, m)
		}
	}
	if err := p.besides(ctx, v); err != nil {
		return err
	}
	if v.Graph, err = p.besideOf(ctx, v.subject, cmp.Or(at, v.To)); err != nil {
		return err
	}
	return p.show(w, r, http.StatusOK, "conversation", &pageData{Title: v.Title, Body: v})
}

// window returns the requested window, still without messages, and the position that it is around, or 0.
func (p *Page) window(r *http.Request) (v *conversationView, at uint64, err error) {
	query := r.URL.Query()
	if at, err = positionOf(r, "at"); err != nil {
		return nil, 0, err
	}
	from, err := positionOf(r, "from")
	if err != nil {
		return nil, 0, err
	}
	to, err := positionOf(r, "to")
	if err != nil {
		return nil, 0, err
	}
	subject, err := p.subjectOf(r, query.Get("in"))
	if err != nil {
		return nil, 0, err
	}
	v = &conversationView{subject: subject, Notice: query.Get("did")}
	if v.Length, err = p.o.Store.Position(r.Context(), subject.Tip); err != nil {
		return nil, 0, err
	}
	if direction := query.Get("prompt"); direction != "" { // the next or previous prompt, or if there is none the message itself
		found, err := p.outlines.prompt(r.Context(), subject.Tip, v.Length, min(at, v.Length+1), direction == "previous")
		if err != nil {
			return nil, 0, err
		}
		at = cmp.Or(found, at)
		v.At = at
	}
	v.From, v.To = windowOf(v.Length, at, from, to)
	return v, at, nil
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
		row := &besideRow{Name: b.Name, Href: (&subject{ID: v.ID, In: b.Context.String()}).Href(0), Here: b.Context.String() == v.Context}
		if b.Context == v.Info.Active {
			row.Href = (&subject{ID: v.ID}).Href(0)
		}
		v.Branches = append(v.Branches, row)
	}
	return p.listSubagents(ctx, v)
}
