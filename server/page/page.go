// Package page is the page of the server: every conversation of a store, live, with its graph. Each view is a URL that is
// rendered here; a small script adds keys, live changes and windows that grow.
//
// Nothing walks a whole history or the whole store: a view reads one page of a list, one window of a history, or the
// forks of one thread.
package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/attachment"
)

// Options configure a page. Store is required.
type Options struct {
	Store *lineage.Store
	// Search finds the messages with a text, best first, in the threads that match a query, or in all threads if it
	// is nil. If Search is nil, texts cannot be searched. Package search provides one.
	Search func(ctx context.Context, text string, among *lineage.ThreadQuery, limit int) ([]Hit, error)
	// Usage reports what answers cost: rows grouped as the query asks, and their sum. If it is nil, there is no usage
	// view. Package usage provides one.
	Usage func(ctx context.Context, q UsageQuery) (rows []*records.Usage, total *records.Usage, err error)
	// Cost returns the displayed cost of a conversation, or "" if it is unknown. It is called for each row of a list,
	// so it must be fast. If it is nil, lists have no costs.
	Cost func(id lineage.ThreadID) string
	// Resume prepares a session of an agent from a history, without writing it: see ErrNoSession. Agents are the
	// agents to offer. If it is nil, the page shows only the command.
	Resume func(ctx context.Context, q ResumeQuery) (*Resumed, error)
	Agents []string
	// ReadOnly hides everything that changes the store.
	ReadOnly bool
	// Logger receives the details of errors, which are not sent to browsers. If it is nil, they are dropped.
	Logger *slog.Logger

	now func() time.Time
}

// Hit is a found message: the threads that have it, and an excerpt with the found words between <mark> and </mark>.
type Hit struct {
	Entry   *lineage.Entry
	Threads []lineage.ThreadID
	Snippet string
}

// Page is the page of a store.
type Page struct {
	o         Options
	templates *template.Template
	graphs    *graph.Live
	outlines  outlines
	script    asset
	style     asset
	icon      asset
	sender    attachment.Sender
}

//go:embed templates static
var files embed.FS

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
	p := &Page{o: o, graphs: graph.NewLive(o.Store), outlines: outlines{store: o.Store}}
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

// does returns a handler that calls a function. Errors are displayed as a page.
func (p *Page) does(do func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := do(w, r)
		if err == nil || r.Context().Err() != nil {
			return
		}
		status, text := http.StatusInternalServerError, "That did not work. The log of the server has the details."
		switch {
		case errors.Is(err, errRequest), errors.Is(err, lineage.ErrInvalid):
			status, text = http.StatusBadRequest, sentence(err)
		case errors.Is(err, lineage.ErrNotFound):
			status, text = http.StatusNotFound, "There is nothing here: it was deleted, or never was."
		case errors.Is(err, lineage.ErrErased):
			status, text = http.StatusGone, "Its content was erased on purpose."
		case errors.Is(err, errMoved), errors.Is(err, lineage.ErrTipMoved):
			status, text = http.StatusConflict, "It was changed after this page was loaded: look at it again."
		case errors.Is(err, lineage.ErrExists), errors.Is(err, lineage.ErrConflict), errors.Is(err, lineage.ErrProtected):
			status, text = http.StatusConflict, sentence(err)
		default:
			p.o.Logger.Error("page failed", "path", r.URL.Path, "err", err)
		}
		v := &view{Title: headings[status], Body: text}
		if id := r.PathValue("thread"); id != "" && status != http.StatusNotFound {
			v.Back = "/t/" + id
		}
		if err := p.show(w, r, status, "error", v); err != nil {
			p.o.Logger.Error("page failed", "path", r.URL.Path, "err", err)
		}
	})
}

// headings are the headings of error pages, by status.
var headings = map[int]string{
	http.StatusBadRequest: "That cannot be done", http.StatusNotFound: "Not here", http.StatusGone: "Erased", http.StatusConflict: "Nothing was done",
	http.StatusInternalServerError: "Something failed",
}

// view is the data of a template.
type view struct {
	Title string
	// At is the name of the current view, for the script and the links at the top.
	At string
	// Writes is set if the store can be changed, Searches if texts can be searched, and Counts if there is a usage
	// view.
	Writes, Searches, Counts bool
	// Resumes is set if sessions of agents can be prepared.
	Resumes             bool
	Script, Style, Icon string
	// Query is the text in the search box.
	Query string
	// Back is where an error page leads back to, or empty.
	Back string
	Body any
}

// show renders a template and sends it. The script gets only the part inside the frame.
func (p *Page) show(w http.ResponseWriter, r *http.Request, status int, name string, v *view) error {
	v.At, v.Writes, v.Searches, v.Counts, v.Resumes = name, !p.o.ReadOnly, p.o.Search != nil, p.o.Usage != nil, p.o.Resume != nil
	v.Script, v.Style, v.Icon = p.script.path, p.style.path, p.icon.path
	frame := "frame"
	if r.URL.Query().Has("part") {
		frame = name
	}
	var out bytes.Buffer
	// The frame renders the view by its name.
	if err := p.templates.ExecuteTemplate(&out, frame, v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err := w.Write([]byte(render.Clean(out.String()))) // no character of a text may reorder the page or be invisible
	if err != nil {
		return context.Cause(r.Context())
	}
	return nil
}

// asset is a static file of the page. Its path contains a hash of its content.
type asset struct {
	path, mediaType string
	body            []byte
}

func newAsset(name, mediaType string) (asset, error) {
	body, err := files.ReadFile("static/" + name)
	a := asset{path: "/" + name, mediaType: mediaType}
	a.add(string(body))
	return a, err
}

func (a *asset) add(text string) {
	a.body = append(a.body, text...)
	path, _, _ := strings.Cut(a.path, "?")
	a.path = fmt.Sprintf("%s?%x", path, sha256.Sum256(a.body))[:len(path)+17]
}

func (a asset) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.mediaType)
	h.Set("Cache-Control", "private, max-age=31536000, immutable")
	_, _ = w.Write(a.body) // the browser has gone
}

// ago formats how long ago a time was.
func (p *Page) ago(at time.Time) string {
	switch d := p.o.now().Sub(at); {
	case at.IsZero():
		return ""
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 30*24*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case at.Year() == p.o.now().Year():
		return at.UTC().Format("2 Jan")
	}
	return at.UTC().Format("2 Jan 2006")
}

// number formats a number with spaces between thousands.
func number(n uint64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// count formats a number of things, with the right plural.
func count[N int | int64 | uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if thing == "branch" {
		thing += "e"
	}
	return number(uint64(n)) + " " + thing + "s"
}

// folder returns the last element of a path of any operating system.
func folder(path string) string {
	path = strings.TrimRight(path, `/\`)
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
