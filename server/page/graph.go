package page

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
)

func (p *Page) graph(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if r.URL.Query().Get("part") == "beside" {
		return p.sendBeside(w, r)
	}
	subject, err := p.subjectOf(r, "")
	if err != nil {
		return err
	}
	from, err := positionOf(r, "from")
	if err != nil {
		return err
	}
	v := &graphView{subject: subject, Filter: r.URL.Query().Get("name")}
	if err := p.graphs.Read(ctx, subject.Info.ID, func(g *graph.Graph) error { v.draw(g, from); return nil }); err != nil {
		return err
	}
	if err := p.sayAll(ctx, v); err != nil {
		return err
	}
	if err := p.count(ctx, v); err != nil {
		return err
	}
	return p.show(w, r, http.StatusOK, "graph", &pageData{Title: subject.Title + " · graph", Body: v})
}

// count sets Number and Of of the rows.
func (p *Page) count(ctx context.Context, v *graphView) error {
	if v.Context == "" {
		return nil // there is no active branch
	}
	c, err := p.contextOf(ctx, v.subject)
	if err != nil {
		return err
	}
	after := make(map[lineage.SpanRef][]lineage.SpanRef)
	for _, row := range v.Rows {
		if !row.several {
			continue
		}
		all, known := after[row.before]
		if !known {
			if all, err = c.Continuations(ctx, row.before, maxRetries); errors.Is(err, lineage.ErrNotFound) {
				all = nil // collected in the meantime
			} else if err != nil {
				return err
			}
			after[row.before] = all
		}
		if i := slices.Index(all, row.Span); i >= 0 && len(all) > 1 {
			row.Number, row.Of = i+1, len(all)
		}
	}
	return nil
}
