package page

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
)

const (
	// places is the number of listed places, and maxUses the number of examined uses.
	places  = 60
	maxUses = 1000
)

// whereView lists the other places of a message's text.
type whereView struct {
	Text   string
	Groups []*whereGroup
	Places int
	// More is set if there may be more places.
	More bool
}

// Count returns the number of places.
func (v *whereView) Count() uint64 { return uint64(v.Places) }

// whereGroup has the places in a conversation.
type whereGroup struct {
	Title, Href string
	Here        bool
	Places      []wherePlace
}

type wherePlace struct {
	Href, Speaker string
	Position      uint64
	Time          time.Time
}

// where lists the other messages with the main content of a message.
func (p *Page) where(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	e, err := p.entriesOf(r)
	if err != nil {
		return err
	}
	own, err := p.threadOf(r)
	if err != nil {
		return err
	}
	v := &whereView{}
	message, err := p.o.Store.Transcribe(ctx, e, preview)
	if err != nil {
		return err
	}
	_, v.Text = transcript.Line(message)
	v.Text = short(words(v.Text), 160)
	f := &placing{Page: p, whereView: v, thread: own.ID(), runs: backend.Runs(ctx, p.o.Store.View()), groups: make(map[lineage.ThreadID]*whereGroup)}
	uses := 0
	for at, err := range p.o.Store.Where(ctx, e.Content) {
		if err != nil {
			return err
		}
		if uses++; uses > maxUses || v.Places == places {
			v.More = true
			break
		}
		if at.Span == e.Span || e.Content.IsZero() {
			continue
		}
		if err := f.add(ctx, at); err != nil && !errors.Is(err, lineage.ErrNotFound) {
			return err
		}
	}
	return p.show(w, r, http.StatusOK, "where", &pageData{Title: "Other places", Body: v})
}

// placing groups messages by conversation.
type placing struct {
	*Page
	*whereView
	thread lineage.ThreadID
	runs   structure.RunLookup
	groups map[lineage.ThreadID]*whereGroup
	last   lineage.SpanRef
}

// add adds a message, unless it is no longer in its conversation. The error is ErrNotFound for a deleted
// conversation.
func (f *placing) add(ctx context.Context, e *lineage.Entry) error {
	if e.Span == f.last {
		return nil // the message uses the text twice
	}
	f.last = e.Span
	run, err := f.runs(e.Span.Run)
	if err != nil || run.Home.Thread.IsZero() {
		return err
	}
	id := run.Home.Thread
	has, active := false, false
	err = f.graphs.Read(ctx, id, func(g *graph.Graph) error {
		at := g.Place(e.Span)
		has = at.Line != nil && at.At <= at.Line.Last
		active = has && at.At <= at.Line.Main
		return nil
	})
	if err != nil || !has {
		return err
	}
	g := f.groups[id]
	if g == nil {
		t, err := f.o.Store.Thread(ctx, id)
		if err != nil {
			return err
		}
		info, err := t.Info(ctx)
		if err != nil {
			return err
		}
		g = &whereGroup{Href: "/t/" + id.String(), Here: id == f.thread}
		if g.Title, err = f.title(ctx, &info); err != nil {
			return err
		}
		f.groups[id], f.Groups = g, append(f.Groups, g)
	}
	found := &subject{ID: id.String(), In: e.Span.String()}
	if active {
		found.In = ""
	}
	g.Places = append(g.Places, wherePlace{Href: found.Href(e.Position), Speaker: e.Role, Position: e.Position, Time: e.CreatedAt})
	f.Places++
	return nil
}
