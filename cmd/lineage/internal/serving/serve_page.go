package serving

import (
	"context"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/resume"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/page"
)

// pageRoutes returns the routes of the page.
func pageRoutes(s *app.Session, readOnly bool, logger *slog.Logger, from *pageIndexes) ([]server.Route, error) {
	p, err := page.New(page.Options{
		Store: s.Store, ReadOnly: readOnly, Logger: logger, Search: from.search, Usage: from.usage, Cost: from.cost,
		Resume: (&transfers{s}).tryResume, Agents: resume.Agents(),
	})
	if err != nil {
		return nil, err
	}
	return p.Routes(), nil
}

// pageIndexes are the indexes for search and usage of the page. Each is opened at its first use.
type pageIndexes struct {
	store *lineage.Store
	dir   string

	mu    sync.Mutex
	texts *search.Index
	costs *usage.Index
	// remove removes the files of temporary indexes.
	remove []func() error

	threads threadCosts
}

// opened returns an index, opening it if necessary.
func opened[T any](p *pageIndexes, is **T, open func(dir string) (*T, error)) (*T, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *is == nil {
		index, remove, err := app.OpenDerived(p.dir, open)
		if err != nil {
			return nil, err
		}
		*is, p.remove = index, append(p.remove, remove)
	}
	return *is, nil
}

func (p *pageIndexes) openTexts(ctx context.Context) (*search.Index, error) {
	return opened(p, &p.texts, func(dir string) (*search.Index, error) { return search.Open(ctx, p.store, dir, search.Options{}) })
}

func (p *pageIndexes) openCosts(ctx context.Context) (*usage.Index, error) {
	return opened(p, &p.costs, func(dir string) (*usage.Index, error) { return usage.Open(ctx, p.store, dir, usage.Options{}) })
}

// search is page.Options.Search.
func (p *pageIndexes) search(ctx context.Context, text string, among *lineage.ThreadQuery, limit int) (hits []page.Hit, err error) {
	index, err := p.openTexts(ctx)
	if err != nil {
		return nil, err
	}
	q := search.Query{Text: text, Limit: limit}
	if among != nil {
		q.Among = p.store.Threads(ctx, *among)
	}
	found, err := index.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if found[i].Entry != nil { // the others are summaries
			hits = append(hits, page.Hit{Entry: found[i].Entry, Threads: found[i].Threads, Snippet: found[i].Snippet})
		}
	}
	return hits, nil
}

// usage is page.Options.Usage.
func (p *pageIndexes) usage(ctx context.Context, q page.UsageQuery) (rows []*records.Usage, total *records.Usage, err error) {
	index, err := p.openCosts(ctx)
	if err != nil {
		return nil, nil, err
	}
	by := []usage.By{usage.By(q.By)}
	report, err := index.Report(ctx, usage.Query{By: by, Since: q.Since})
	if err != nil {
		return nil, nil, err
	}
	return report.Records(by), report.TotalRecord(), nil
}

// close closes the indexes. They must not be in use.
func (p *pageIndexes) close() (err error) {
	p.threads.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.texts != nil {
		err = p.texts.Close()
	}
	if p.costs != nil {
		err = errors.Join(err, p.costs.Close())
	}
	for _, remove := range p.remove {
		err = errors.Join(err, remove())
	}
	return err
}

// printLink prints or opens a link to a running server of the store.
func printLink(ctx context.Context, a *app.App, o *serveOptions) error {
	return a.Open(ctx, app.Reading|app.NoThread, func(ctx context.Context, s *app.Session) error {
		dir, err := server.RuntimeDir()
		if err != nil {
			return err
		}
		all, err := server.Find(dir, s.Store.ID())
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return app.Hint(fmt.Errorf("server of %s: %w", s.Name, lineage.ErrNotFound), "'lineage serve' starts one")
		}
		is := &all[len(all)-1]
		link, err := is.Link(ctx)
		if err != nil {
			return err
		}
		if o.open {
			if err := openBrowser(dir, link); err != nil {
				s.Warn("the browser was not opened: %v", err)
			}
		}
		r := &records.Serving{Store: s.Name, URL: is.URL, Link: link, ReadOnly: is.ReadOnly}
		return s.Print(r, "%s\n", screen.Line(link))
	})
}

// openedFor is how long the file that leads a browser to the page is kept. It is as long as the link works.
const openedFor = time.Minute

// openBrowser opens a link in the user's browser. Other users can see the arguments of programs, so the link is in a
// file that only this user can read.
func openBrowser(dir, link string) error {
	f, err := os.CreateTemp(dir, "open-*.html") // mode 0600
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>"+
		"<meta http-equiv=refresh content=\"0;url=%s\"><a href=\"%[1]s\">Lineage</a>\n", html.EscapeString(link))
	if err = errors.Join(err, f.Close()); err == nil {
		err = startBrowser(f.Name())
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// startBrowser starts the user's program for a file.
func startBrowser(file string) error {
	name, args := "xdg-open", []string{file}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", file}
	}
	c := exec.Command(name, args...)
	if err := c.Start(); err != nil {
		return err
	}
	go func() { _ = c.Wait() }() // it is no process of ours any more, whatever came of it
	return nil
}

// removeOpened removes files that led browsers to the page, after their links have expired.
func removeOpened(dir string, now time.Time) {
	files, _ := filepath.Glob(filepath.Join(dir, "open-*.html")) // only the pattern can be wrong
	for _, file := range files {
		if info, err := os.Lstat(file); err == nil && now.Sub(info.ModTime()) > openedFor {
			_ = os.Remove(file) // the next server tries again
		}
	}
}
