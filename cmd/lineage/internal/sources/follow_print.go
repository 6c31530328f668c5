package sources

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/records"
)

// followPrinter prints the events of a run.
type followPrinter struct {
	*app.OpenStore
	ctx  context.Context
	line *screen.Progress
	// waiting is set when everything was read for the first time.
	waiting                   bool
	found, messages, problems int64
	err                       error // of writing
}

func (p *followPrinter) event(e follow.Event) {
	if e.Err != nil && e.Kind != follow.StoreFailed {
		p.problems++
	}
	if e.Kind == follow.Reading {
		p.line.Show(e.Done, e.Total)
		return
	}
	if p.JSON {
		if e.Kind == follow.Found && e.Files == 0 {
			return
		}
		p.err = errors.Join(p.err, p.Emit(p.record(e)), p.Flush())
		return
	}
	p.show(e)
	p.err = errors.Join(p.err, p.Flush())
}

func (p *followPrinter) record(e follow.Event) *records.Followed {
	r := &records.Followed{
		Event: string(e.Kind), Time: time.Now().UTC(), Agent: e.Agent, Path: e.Path, Files: e.Files, Bytes: e.Bytes, Soon: e.Soon,
		Messages: e.Messages, Skipped: e.Skipped, Reason: e.Reason,
	}
	for _, id := range e.Conversations {
		if t, err := follow.ThreadOf(p.ctx, p.Store, id); err == nil {
			r.Threads = append(r.Threads, t.ID().String())
		}
	}
	if e.Err != nil {
		r.Error = app.Saying(e.Err)
	}
	return r
}

// show prints an event for a person.
func (p *followPrinter) show(e follow.Event) {
	path := screen.Line(e.Path)
	switch e.Kind {
	case follow.Found:
		if e.Files == 0 {
			return
		}
		p.found += e.Files
		reason := ""
		if e.Reason != "" {
			reason = ", " + e.Reason
		}
		p.Printf("%s  %s, %s%s  %s\n", p.agentName(e.Agent), sessionFiles(e), amount.Bytes(e.Bytes), reason, p.Out.Paint(screen.Dim, path))
		if e.Soon > 0 {
			p.Printf("  %s deletes sessions %s after their last change: %s of these within a week. They are kept here.\n",
				p.agentName(e.Agent), amount.Plural(int(e.Keeps.Hours()/24), "day"), amount.Count(e.Soon))
		}
	case follow.Read:
		p.messages += e.Messages
		if e.Err != nil {
			p.problem(e)
		}
		if p.waiting && e.Messages > 0 {
			p.Printf("%s  %s  %s  %s\n", p.Out.Paint(screen.Dim, time.Now().Format("15:04:05")), p.agentName(e.Agent),
				amount.Plural(e.Messages, "new message"), p.titles(e))
		}
	case follow.Failed:
		p.problem(e)
	case follow.Gone:
		if p.waiting {
			p.Printf("%s  %s  gone, and kept here  %s\n", p.Out.Paint(screen.Dim, time.Now().Format("15:04:05")), p.agentName(e.Agent), path)
		}
	case follow.StoreFailed:
		p.line.Done()
		p.Warn("following waits until the store works: %s", app.Saying(e.Err))
	case follow.StoreWorks:
		p.line.Done()
		p.Warn("following goes on")
	case follow.Slow:
		p.line.Done()
		p.Warn("%s is looked at every few seconds: %s", e.Path, e.Reason)
	case follow.Waiting:
		p.line.Done()
		if !p.waiting {
			p.waiting = true
			p.read(e)
		}
	}
}

// read prints the result of reading before the first wait.
func (p *followPrinter) read(e follow.Event) {
	switch {
	case p.found == 0:
		p.Printf("no sessions found\n")
	case e.Files == 0:
		p.Printf("nothing is new\n")
	default:
		p.Printf("read %s: %s\n", sessionFiles(e), amount.Plural(p.messages, "new message"))
	}
	if p.problems > 0 {
		p.Note("'lineage follow --list' shows what could not be read")
	}
}

// stopped prints the result of a run that was stopped.
func (p *followPrinter) stopped() {
	p.line.Done()
	switch messages := amount.Plural(p.messages, "new message"); {
	case p.JSON:
	case p.waiting:
		p.Printf("stopped: %s since the start\n", messages)
	default:
		p.Printf("stopped before everything was read: %s so far, and the next run reads the rest\n", messages)
	}
}

// problem prints a problem with a file or folder.
func (p *followPrinter) problem(e follow.Event) {
	p.line.Done()
	what := ""
	if e.Skipped > 0 {
		what = amount.Plural(e.Skipped, "item") + " left out: "
	}
	p.Warn("%s: %s%s", e.Path, what, app.Saying(e.Err))
}

// titles returns the titles of the threads of a file, or its path.
func (p *followPrinter) titles(e follow.Event) string {
	if len(e.Conversations) == 1 {
		if t, err := follow.ThreadOf(p.ctx, p.Store, e.Conversations[0]); err == nil {
			if info, err := t.Info(p.ctx); err == nil {
				if title, err := p.Store.ShownTitle(p.ctx, info); err == nil {
					return screen.Cut(screen.Line(title), 60)
				}
			}
		}
	}
	return screen.Line(e.Path)
}

// agentName returns the name of an agent for people.
func (p *followPrinter) agentName(name string) string {
	for _, agent := range follow.Agents() {
		if agent.Name == name {
			return agent.Title
		}
	}
	return "folder"
}

// sessionFiles says how many files an event counts. Files of lines have one session each.
func sessionFiles(e follow.Event) string {
	var counts []string
	if files := e.Files - e.Databases; files > 0 {
		counts = append(counts, amount.Plural(files, "session"))
	}
	if e.Databases > 0 {
		counts = append(counts, amount.Plural(e.Databases, "database"))
	}
	return strings.Join(counts, " and ")
}
