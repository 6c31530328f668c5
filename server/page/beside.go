package page

import (
	"context"
	"net/http"
	"sort"

	"github.com/lineage-store/lineage/lineage/graph"
)

const (
	// besideRows is how many rows of a graph are beside a conversation, and besideLanes how many lanes.
	besideRows  = 40
	besideLanes = 8
)

var narrow = scale{row: 24, lane: 11, start: 8, most: 66, least: 6}

// besideOf returns the graph of a thread around a position of a history, as it is beside the conversation. It is nil if
// nothing but the history is in it.
func (p *Page) besideOf(ctx context.Context, is *place, at uint64) (*graphView, error) {
	v := &graphView{place: is}
	err := p.graphs.Read(ctx, is.Info.ID, func(g *graph.Graph) error {
		d := g.Draw(graph.Options{Lanes: besideLanes})
		v.Total = len(d.Rows)
		if d.Lanes < 2 && v.Total < 3 {
			return nil
		}
		near := sort.Search(v.Total, func(i int) bool { return d.Rows[i].Position() >= at })
		v.From = max(0, min(near-besideRows/2, v.Total-besideRows))
		end := min(v.From+besideRows, v.Total)
		v.picture(d, narrow, end)
		on := g.Place(is.Tip).On()
		for i, row := range v.Rows {
			of := &d.Rows[v.From+i]
			if row.On = of.At <= on[of.Line]; row.On {
				row.Href = is.Href(row.Position)
			}
		}
		return nil
	})
	if err != nil || v.Rows == nil {
		return nil, err
	}
	return v, p.sayAll(ctx, v)
}

// sendBeside sends the graph beside a conversation again.
func (p *Page) sendBeside(w http.ResponseWriter, r *http.Request) error {
	at, err := positionOf(r, "at")
	if err != nil {
		return err
	}
	is, err := p.placeOf(r, r.URL.Query().Get("in"))
	if err != nil {
		return err
	}
	v, err := p.besideOf(r.Context(), is, at)
	if err != nil {
		return err
	}
	return p.show(w, r, http.StatusOK, "beside", &view{Body: v})
}
