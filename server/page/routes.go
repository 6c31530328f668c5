package page

import (
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/attachment"
)

// New returns the page of a store.
func New(o Options) (*Page, error) {
	if o.Store == nil {
		return nil, fmt.Errorf("page without a store: %w", lineage.ErrInvalid)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	t, err := render.Template.Clone()
	if err != nil {
		return nil, err
	}
	p := &Page{o: o, sender: attachment.NewSender(), graphs: graph.NewLive(o.Store), outlines: outlines{store: o.Store}}
	if p.templates, err = t.Funcs(template.FuncMap{"ago": p.ago, "number": number, "folder": folder, "mark": markOf, "amount": amount, "count": count[int], "sum": count[uint64], "sentence": func(text string) string { return sentence(errors.New(text)) }}).ParseFS(files, "templates/*.html"); err != nil {
		return nil, err
	}
	if p.script, err = newAsset("page.js", "text/javascript; charset=utf-8"); err != nil {
		return nil, err
	}
	for _, name := range []string{"conversation.js", "map.js", "acts.js"} {
		more, err := files.ReadFile("static/" + name)
		if err != nil {
			return nil, err
		}
		p.script.add(string(more))
	}
	if p.icon, err = newAsset("icon.svg", "image/svg+xml"); err != nil {
		return nil, err
	}
	p.style, err = newAsset("page.css", "text/css; charset=utf-8")
	p.style.add(render.Style)
	return p, err
}

// Routes returns the routes of the page.
func (p *Page) Routes() []server.Route {
	type does = func(w http.ResponseWriter, r *http.Request) error
	get := func(path string, do does) server.Route {
		return server.Route{Pattern: "GET " + path, Handler: p.does(do)}
	}
	post := func(path string, do does) server.Route {
		return server.Route{Pattern: "POST " + path, Writes: true, Handler: p.does(do)}
	}
	routes := []server.Route{
		get("/{$}", p.home),
		get("/t/{thread}", p.conversation),
		get("/t/{thread}/graph", p.graph),
		get("/t/{thread}/sides", p.sides),
		get("/t/{thread}/map", p.minimap),
		get("/t/{thread}/prompts", p.prompts),
		get("/t/{thread}/message/{run}/{seq}", p.message),
		get("/t/{thread}/where/{run}/{seq}", p.where),
		get("/t/{thread}/image/{run}/{seq}/{hash}", p.image),
		get("/t/{thread}/delete", p.askDelete),
		get("/search", p.search),
		{Pattern: "GET /page.js", Handler: p.script},
		{Pattern: "GET /page.css", Handler: p.style},
		{Pattern: "GET /icon.svg", Handler: p.icon},
	}
	if p.o.Usage != nil {
		routes = append(routes, get("/usage", p.usage))
	}
	if p.o.Resume != nil {
		routes = append(routes, get("/t/{thread}/resume", p.resume))
	}
	if p.o.ReadOnly {
		return routes
	}
	return append(routes,
		get("/t/{thread}/edit", p.askEdit),
		post("/t/{thread}/edit", p.edit),
		post("/t/{thread}/rename", p.rename),
		post("/t/{thread}/fork", p.fork),
		post("/t/{thread}/checkpoint", p.checkpoint),
		post("/t/{thread}/undo", p.undo),
		post("/t/{thread}/delete", p.delete),
	)
}
