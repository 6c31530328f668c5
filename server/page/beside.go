package page

import (
	"context"
	"net/http"

	"github.com/lineage-store/lineage/lineage/graph"
)

const (
	// besideRows and besideLanes are the number of rows and lanes of the graph beside a conversation.
	besideRows  = 40
	besideLanes = 8
)

var narrow = scale{row: 24, lane: 11, start: 8, most: 66, least: 6}

// besideOf returns the part of a thread's graph around a position, to be displayed beside the conversation. It is nil
// if the graph has nothing but this history.
func (p *Page) besideOf(ctx context.Context, subject *subject, at uint64) (*graphView, error) {
	v := &graphView{subject: subject}
	err := p.graphs.Read(ctx, subject.Info.ID, func(g *graph.Graph) error {
		d := g.Draw(graph.Options{Lanes: besideLanes})
		v.Total = len(d.Rows)
		if d.Lanes < 2 && v.Total < 3 {
			return nil
		}
		near, on := 0, g.Place(subject.Tip).On()
		shown := func(r *graph.Row) bool { return r.At <= on[r.Line] }
		for i := range d.Rows { // positions start again with each beginning of the thread
			if r := &d.Rows[i]; shown(r) && r.Position() <= at {
				near = i
			}
		}
		v.From = max(0, min(near-besideRows/2, v.Total-besideRows))
		end := min(v.From+besideRows, v.Total)
		v.picture(d, narrow, end)
		for i, row := range v.Rows {
			if row.On = shown(&d.Rows[v.From+i]); row.On {
				row.Href = subject.Href(row.Position)
			}
		}
		return nil
	})
	if err != nil || v.Rows == nil {
		return nil, err
	}
	return v, p.sayAll(ctx, v)
}

// sendBeside sends an update of what is beside a conversation: its graph and its subagents.
func (p *Page) sendBeside(w http.ResponseWriter, r *http.Request) error {
	at, err := positionOf(r, "at")
	if err != nil {
		return err
	}
	subject, err := p.subjectOf(r, r.URL.Query().Get("in"))
	if err != nil {
		return err
	}
	v := &conversationView{subject: subject}
	if v.Graph, err = p.besideOf(r.Context(), subject, at); err != nil {
		return err
	}
	if v.subagents, err = p.subagentsOf(r.Context(), subject); err != nil {
		return err
	}
	if err := p.listSubagents(r.Context(), v); err != nil {
		return err
	}
	return p.show(w, r, http.StatusOK, "beside", &pageData{Body: v})
}
