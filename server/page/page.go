// Package page is the page of the server: every conversation of a store, live, with its graph. Each view is a URL that is
// rendered here; a small script adds keys, live changes and windows that grow.
//
// Nothing walks a whole history or the whole store: a view reads one page of a list, one window of a history, or the
// forks of one thread.
package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/server/attachment"
)

// Page is the page of a store.
type Page struct {
	o         Options
	templates *template.Template
	graphs    *graph.Live
	outlines  outlines
	script    asset
	style     asset
	icon      asset
	sender    *attachment.Sender
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
		v := &pageData{Title: headings[status], Body: text}
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

// pageData is the data of a template.
type pageData struct {
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
func (p *Page) show(w http.ResponseWriter, r *http.Request, status int, name string, v *pageData) error {
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
