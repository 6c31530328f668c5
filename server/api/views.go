package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/filters"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive/export"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/access"
)

type resolvedQuery struct {
	of
	Last   uint64 `json:"-" query:"last" doc:"at most the last so many messages"`
	Budget int    `json:"-" query:"budget" doc:"the number of tokens it may take, by estimate"`
}

// resolved answers with the parts to send to a model, and at the end with their sum.
func (a *API) resolved(ctx context.Context, c *call, in *resolvedQuery) (*list[records.Record], error) {
	found, err := c.context(ctx, in.of)
	if err != nil {
		return nil, err
	}
	resolved, err := found.Context.Resolve(ctx, lineage.ResolveOptions{Last: in.Last, Budget: in.Budget})
	if err != nil {
		return nil, err
	}
	c.tellTip(records.SpanID(resolved.Tip))
	out, bytes := &list[records.Record]{}, int64(0)
	for i := range resolved.Parts {
		p := &resolved.Parts[i]
		r := &records.Part{Tokens: p.Tokens}
		if p.Entry == nil {
			r.Summary = records.NewSummary(p.Summary)
		} else if r.Message, err = records.OfMessage(ctx, a.o.Store, p.Entry, records.MaxText); err != nil {
			return nil, err
		} else if bytes += p.Entry.Size; bytes > lineage.MostBody {
			return nil, fmt.Errorf("history: %w: give a budget", lineage.ErrTooLarge)
		}
		out.Items = append(out.Items, r)
	}
	out.Items = append(out.Items, &records.Resolved{
		SystemPrompt: resolved.SystemPrompt, Model: resolved.Model, Parts: len(resolved.Parts), Tokens: resolved.Tokens,
		Omitted: resolved.Omitted, Digest: resolved.Digest.String(),
	})
	return out, nil
}

type searchInput struct {
	Text   string   `json:"-" query:"q" doc:"what to search for, with the filters of lineage search; their days are of UTC"`
	Thread string   `json:"-" query:"thread" doc:"only in this thread"`
	Roles  []string `json:"-" query:"role" doc:"only messages of this role"`
	Limit  int      `json:"-" query:"limit" doc:"at most so many; default 100, at most 1000"`
	among
}

func (a *API) search(ctx context.Context, c *call, in *searchInput) (*list[*records.Hit], error) {
	filter, text, err := filters.Read(in.Text, time.UTC)
	if err != nil {
		return nil, fmt.Errorf("q: %w", err)
	}
	if text == "" {
		return nil, fmt.Errorf("q: %w: must have words to search for", lineage.ErrInvalid)
	}
	if filter != nil && filter.User != nil && in.User == nil {
		in.User = filter.User
	}
	p := listPage{Limit: in.Limit}
	q := SearchQuery{Text: text, Roles: in.Roles, Scope: c.caller.Scope, Limit: p.size()}
	if in.Thread != "" {
		t, err := c.thread(ctx, in.Thread)
		if err != nil {
			return nil, err
		}
		q.Thread = t.ID()
	}
	if filter != nil || !in.all() || !q.Scope.All() && in.Thread == "" {
		query, err := in.query(&q.Scope)
		if err == nil && filter != nil {
			err = filters.Add(&query, filter)
		}
		if err != nil {
			return nil, err
		}
		q.Among = threadsOf(ctx, a.o.Store, query, &c.caller.Scope)
	}
	found := &list[*records.Hit]{}
	q.Behind = func(commits uint64) { found.Behind = commits }
	found.Items, err = a.o.Search(ctx, q)
	return found, err
}

type usageInput struct {
	By      []string  `json:"-" query:"by" doc:"day, week, month, agent, model, provider, project, thread, branch, git-branch, machine, subagent or user"`
	Since   time.Time `json:"-" query:"since" doc:"only answers of this time or later"`
	Until   time.Time `json:"-" query:"until" doc:"only answers before this time"`
	Zone    string    `json:"-" query:"zone" doc:"the time zone of days, weeks and months, such as Europe/Lisbon; default UTC"`
	Thread  string    `json:"-" query:"thread" doc:"only answers in the history of this thread"`
	Agent   string    `json:"-" query:"agent" doc:"only sessions of this agent"`
	Model   string    `json:"-" query:"model" doc:"only answers of this model"`
	User    string    `json:"-" query:"user" doc:"only threads of this user"`
	Project string    `json:"-" query:"project" doc:"only sessions that began in this folder"`
}

// anywhere are the keys of usage that reveal nothing about a thread.
var anywhere = []string{"day", "week", "month", "model", "provider"}

// mayAsk refuses what shows where an answer counts: in the thread that had it first, which may be of another user. In the
// report of one thread it is that thread.
func (in *usageInput) mayAsk(scope *access.Scope) error {
	if len(scope.Users) == 0 || in.Thread != "" {
		return nil
	}
	for _, key := range in.By {
		if !slices.Contains(anywhere, key) {
			return fmt.Errorf("by %.100q: %w: a token for some users asks by %s, or about a thread", key, lineage.ErrInvalid, strings.Join(anywhere, ", "))
		}
	}
	if in.Agent != "" || in.Project != "" {
		return fmt.Errorf("agent and project: %w: a token for some users asks with them about a thread", lineage.ErrInvalid)
	}
	return nil
}

func (a *API) usage(ctx context.Context, c *call, in *usageInput) (_ *list[*records.Usage], err error) {
	if err := in.mayAsk(&c.caller.Scope); err != nil {
		return nil, err
	}
	q := UsageQuery{By: in.By, Since: in.Since, Until: in.Until, Agent: in.Agent, Model: in.Model}
	if q.Zone, err = time.LoadLocation(in.Zone); err != nil {
		return nil, fmt.Errorf("zone %.100q: %w: must be a name such as Europe/Lisbon", in.Zone, lineage.ErrInvalid)
	}
	scope := &c.caller.Scope
	if in.Thread != "" {
		t, err := c.thread(ctx, in.Thread)
		if err != nil {
			return nil, err
		}
		q.Thread = t.ID()
	} else {
		q.Users, q.Projects = scope.Users, scope.Projects
	}
	if q.Users, err = narrowed("user", q.Users, in.User); err == nil {
		q.Projects, err = narrowed("project", q.Projects, in.Project)
	}
	if err != nil {
		return nil, err
	}
	rows, err := a.o.Usage(ctx, q)
	return &list[*records.Usage]{Items: rows}, err
}

// narrowed restricts a list of permitted values to the requested one.
func narrowed(what string, to []string, one string) ([]string, error) {
	switch {
	case one == "":
		return to, nil
	case len(to) > 0 && !slices.Contains(to, one):
		return nil, notFound(what, one)
	}
	return []string{one}, nil
}

type statsQuery struct {
	Exact bool `json:"-" query:"exact" doc:"count copies by reading every message, however many there are"`
}

func (a *API) stats(ctx context.Context, _ *call, in *statsQuery) (*records.Stats, error) {
	return records.OfStats(ctx, a.o.Store, in.Exact, nil)
}

// line is a sequence of messages without a fork to follow, in the histories of a thread.
type line struct {
	// ID is the last message of the line. After is the message from which it forks.
	ID    string  `json:"id"`
	After *string `json:"after"`
	// Before is the number of messages before it. Length is its number of messages. Main is the number of these in
	// the active branch.
	Before uint64  `json:"before"`
	Length uint64  `json:"length"`
	Main   uint64  `json:"main"`
	Labels []label `json:"labels"`
}

// label is a name that points to a message of a line.
type label struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Message string `json:"message"`
	Active  bool   `json:"active,omitempty"`
	Context string `json:"context,omitempty"`
}

// RecordType implements records.Record.
func (*line) RecordType() string { return "line" }

func (a *API) graph(ctx context.Context, c *call, in *ofThread) (*list[*line], error) {
	t, err := c.thread(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	g, err := graph.Of(ctx, a.o.Store, t)
	if err != nil {
		return nil, err
	}
	out, at := &list[*line]{}, make(map[*graph.Line]*line)
	for l := range g.Lines() {
		r := &line{ID: l.At(l.Last).Ref().String(), Before: l.Before, Length: l.Last, Main: l.Main, Labels: []label{}}
		if l.After != (graph.Place{}) {
			r.After = records.SpanID(l.After.Ref())
		}
		at[l] = r
		out.Items = append(out.Items, r)
	}
	for place, labels := range g.Labels {
		r := at[place.Line]
		if r == nil {
			continue // a name of an empty history
		}
		for _, l := range labels {
			r.Labels = append(r.Labels, label{
				Kind: string(l.Kind), Name: l.Name, Message: place.Ref().String(), Active: l.Active, Context: records.ID(l.Context),
			})
		}
	}
	for _, r := range out.Items {
		slices.SortFunc(r.Labels, func(a, b label) int { return strings.Compare(a.Message+a.Kind+a.Name, b.Message+b.Kind+b.Name) })
	}
	return out, nil
}

type exportQuery struct {
	ofThread
	Format  string `json:"-" query:"format" doc:"openai, responses, anthropic, sharegpt, markdown or html"`
	Context string `json:"-" query:"context" doc:"only this context; default the thread with all its branches"`
}

// mediaTypes maps formats of exports to their media types.
var mediaTypes = map[export.Format]string{
	export.Markdown: "text/markdown; charset=utf-8", export.HTML: "text/html; charset=utf-8", export.ShareGPT: "application/json",
	export.OpenAI: "application/jsonl", export.Responses: "application/jsonl", export.Anthropic: "application/jsonl",
}

func (a *API) export(ctx context.Context, c *call, in *exportQuery) error {
	t, err := c.thread(ctx, in.Thread)
	if err != nil {
		return err
	}
	format := export.Format(in.Format)
	kind, known := mediaTypes[format]
	if !known {
		return fmt.Errorf("format %.100q: %w: must be openai, responses, anthropic, sharegpt, markdown or html", in.Format, lineage.ErrInvalid)
	}
	scope := export.Scope{Threads: []*lineage.Thread{t}}
	if in.Context != "" {
		found, err := c.context(ctx, of{Thread: in.Thread, Context: in.Context})
		if err != nil {
			return err
		}
		scope = export.Scope{Context: found.Context}
	}
	return c.attach(kind, "export", func(w io.Writer) error {
		return export.Write(ctx, a.o.Store, w, format, export.Options{Scope: scope})
	})
}

// attach answers with bytes that write makes, as a file: no browser opens it as a document of the page.
func (c *call) attach(kind, name string, write func(io.Writer) error) error {
	h := c.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", "attachment; filename=\""+name+"\"")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	w := &trackedWriter{w: c.w}
	err := write(w)
	if err != nil && w.began {
		c.a.o.Logger.LogAttrs(c.r.Context(), levelError, "export failed", attr("err", err.Error()))
		panic(http.ErrAbortHandler) // the answer is cut off, and the caller must notice that
	}
	if err != nil {
		h.Del("Content-Disposition")
	}
	return err
}

// trackedWriter writes an answer and knows whether a part of it may have been sent.
type trackedWriter struct {
	w     http.ResponseWriter
	began bool
}

// Write implements io.Writer.
func (l *trackedWriter) Write(p []byte) (int, error) {
	l.began = true
	return l.w.Write(p)
}
