package page

import (
	"net/http"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/structure"
)

// sidesView is two histories side by side, from where they part.
type sidesView struct {
	*place
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

// before is how many messages of the common beginning are shown.
const before = 2

func (p *Page) sides(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	v := &sidesView{}
	var places [2]*place
	for i, key := range []string{"a", "b"} {
		in := r.URL.Query().Get(key)
		is, err := p.placeOf(r, in)
		if err != nil {
			return err
		}
		if _, err := structure.ParseSpanRef(in); err == nil {
			is.Branch = "message"
		}
		places[i] = is
	}
	if places[0].Tip.IsZero() || places[1].Tip.IsZero() {
		return refuse("A branch without messages cannot be compared.")
	}
	v.place = places[0]
	common, err := p.o.Store.CommonPrefix(ctx, places[0].Tip, places[1].Tip)
	if err != nil {
		return err
	}
	v.Common = common
	if common > 0 {
		if v.Shared, err = p.messages(ctx, places[0], lineage.Window{From: max(common, before) - before + 1, To: common}); err != nil {
			return err
		}
	}
	for i, is := range places {
		s := &v.Sides[i]
		if s.Length, err = p.o.Store.Position(ctx, is.Tip); err != nil {
			return err
		}
		is.prefix = string("ab"[i]) + "-"
		s.Name, s.Href = is.Branch, is.Href(common+1)
		to := min(common+window/2, s.Length)
		s.More = s.Length - to
		if s.Messages, err = p.messages(ctx, is, lineage.Window{From: common + 1, To: to}); err != nil {
			return err
		}
	}
	return p.show(w, r, http.StatusOK, "sides", &view{Title: v.Title + " · side by side", Body: v})
}
