package page

import (
	"context"
	"fmt"
	"net/http"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/structure"
)

// sidesView shows two histories side by side, from their common ancestor on.
type sidesView struct {
	*subject
	Common uint64
	Shared []*render.Message
	Sides  [2]side
}

type side struct {
	Name, Href string
	Messages   []*render.Message
	Length     uint64
	More       uint64
}

// before is the number of displayed messages before the histories part.
const before = 2

// nameOf returns the displayed name of a position: the names that point to it, or else its number.
func (p *Page) nameOf(ctx context.Context, subject *subject) (name string, err error) {
	position, err := p.o.Store.Position(ctx, subject.Tip)
	if err != nil {
		return "", err
	}
	err = p.graphs.Read(ctx, subject.Info.ID, func(g *graph.Graph) error {
		for _, l := range g.Labels[g.Place(subject.Tip)] {
			if name == "" || l.Active {
				name = l.String()
			}
		}
		return nil
	})
	if name == "" {
		name = fmt.Sprint("message ", position)
	}
	return name, err
}

func (p *Page) sides(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	v := &sidesView{}
	var subjects [2]*subject
	for i, key := range []string{"a", "b"} {
		in := r.URL.Query().Get(key)
		side, err := p.subjectOf(r, in)
		if err != nil {
			return err
		}
		if _, err := structure.ParseSpanRef(in); err == nil {
			if side.Branch, err = p.nameOf(ctx, side); err != nil {
				return err
			}
		}
		subjects[i] = side
	}
	if subjects[0].Tip.IsZero() || subjects[1].Tip.IsZero() {
		return refuse("A branch without messages cannot be compared.")
	}
	v.subject = subjects[0]
	common, err := p.o.Store.CommonPrefix(ctx, subjects[0].Tip, subjects[1].Tip)
	if err != nil {
		return err
	}
	v.Common = common
	if common > 0 {
		if v.Shared, err = p.messages(ctx, subjects[0], lineage.Window{From: max(common, before) - before + 1, To: common}); err != nil {
			return err
		}
	}
	for i, side := range subjects {
		s := &v.Sides[i]
		if s.Length, err = p.o.Store.Position(ctx, side.Tip); err != nil {
			return err
		}
		side.prefix = string("ab"[i]) + "-"
		s.Name, s.Href = side.Branch, side.Href(common+1)
		to := min(common+window/2, s.Length)
		s.More = s.Length - to
		if s.Messages, err = p.messages(ctx, side, lineage.Window{From: common + 1, To: to}); err != nil {
			return err
		}
	}
	return p.show(w, r, http.StatusOK, "sides", &pageData{Title: v.Title + " · side by side", Body: v})
}
