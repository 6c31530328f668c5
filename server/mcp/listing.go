package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/filters"
	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// maxRows limits the rows that a tool lists. defaultRows is the default.
const (
	maxRows     = 100
	defaultRows = 20
)

// rows returns the number of rows to list.
func rows(limit int) int {
	if limit <= 0 {
		return defaultRows
	}
	return min(limit, maxRows)
}

// stamp returns a time for people.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

type threadsInput struct {
	Title string `json:"title,omitempty" jsonschema:"only those whose title begins so"`
	Agent string `json:"agent,omitempty" jsonschema:"only sessions of this agent, such as claude-code or codex"`
	Since string `json:"since,omitempty" jsonschema:"only those that changed at this time or later: 2026-01-31 in UTC, or as in RFC 3339"`
	Until string `json:"until,omitempty" jsonschema:"only those that changed before this time"`
	Limit int    `json:"limit,omitempty" jsonschema:"at most so many (default 20, at most 100)"`
	After string `json:"after,omitempty" jsonschema:"continue after the page that ended with this token"`
}

// query returns the query for the arguments.
func (in *threadsInput) query() (q lineage.ThreadQuery, err error) {
	if err := checked(in.Title, in.Agent, in.After); err != nil {
		return q, err
	}
	q.TitlePrefix = in.Title
	if q.From, err = moment("since", in.Since); err != nil {
		return q, err
	}
	if q.To, err = moment("until", in.Until); err != nil {
		return q, err
	}
	if in.Agent != "" {
		value, err := json.Marshal(in.Agent)
		if err != nil {
			return q, err
		}
		q.Metadata = []lineage.MetadataIs{{Key: archive.KeyAgent, Value: value}}
	}
	if q.After, err = backend.ParsePageToken(in.After); err != nil {
		return q, fmt.Errorf("after: %w: %w", lineage.ErrInvalid, err)
	}
	return q, nil
}

func (c *call) listThreads(ctx context.Context, in *threadsInput) (*answer, error) {
	q, err := in.query()
	if err != nil {
		return nil, err
	}
	a, limit := newAnswer(0), rows(in.Limit)
	last := ""
	for t, err := range c.threads(ctx, q) {
		if err != nil {
			return nil, err
		}
		if len(a.records) == limit {
			a.full = true
			break
		}
		r, err := records.OfThread(ctx, c.o.Store, t.Thread)
		if errors.Is(err, lineage.ErrNotFound) {
			continue // deleted in the meantime
		}
		if err != nil {
			return nil, err
		}
		r.SourceID = c.scope.Chosen(r.SourceID)
		title, err := c.title(ctx, &t.Was)
		if err != nil {
			return nil, err
		}
		line := fmt.Sprintf("%s  %s  %s, %s  %s", refs.Short(t.ID()), stamp(r.UpdatedAt), messageCount(r), amount.Plural(r.Branches, "branch"), title)
		if agent := r.States(archive.KeyAgent); agent != "" {
			line += "  (" + plain.Line(agent) + ")"
		}
		if ok, err := a.add(r); err != nil || !ok || !a.quote("%s\n", line) {
			if err != nil {
				return nil, err
			}
			break
		}
		last = t.Page.String()
	}
	if a.full {
		a.next = given(map[string]any{"title": in.Title, "agent": in.Agent, "since": in.Since, "until": in.Until, "after": last})
		if in.Limit > 0 {
			a.next["limit"] = limit
		}
	}
	a.head = fmt.Sprintf("%s in %s, the one that changed last first.", amount.Plural(len(a.text), "conversation"), plain.Line(c.scopeText()))
	return a, nil
}

// messageCount returns the number of messages of a thread.
func messageCount(r *records.Thread) string {
	if r.SubagentMessages > 0 {
		return amount.Plural(r.SubagentMessages, "message") + " of subagents"
	}
	return amount.Plural(r.Messages, "message")
}

// given returns the arguments without empty ones.
func given(args map[string]any) map[string]any {
	for name, value := range args {
		if value == "" {
			delete(args, name)
		}
	}
	return args
}

// maxTitle limits a title in an answer, in bytes.
const maxTitle = 200

// title returns the title under which a thread is shown.
func (c *call) title(ctx context.Context, info *lineage.ThreadInfo) (string, error) {
	shown := *info
	shown.SourceID = c.scope.Chosen(shown.SourceID)
	title, err := c.o.Store.ShownTitle(ctx, shown)
	return cut(cmp.Or(plain.Line(title), transcript.Untitled), maxTitle), err
}

type searchInput struct {
	Query  string   `json:"query" jsonschema:"what to search for: words, \"a phrase\", AND, OR, NOT, and the filters agent:NAME, branch:NAME, after:DATE and before:DATE"`
	Thread string   `json:"thread,omitempty" jsonschema:"only in this conversation: its id or title"`
	Roles  []string `json:"roles,omitempty" jsonschema:"only messages of these roles: user, assistant, system, tool"`
	Agent  string   `json:"agent,omitempty" jsonschema:"only in sessions of this agent"`
	Since  string   `json:"since,omitempty" jsonschema:"only in conversations that changed at this time or later: 2026-01-31 in UTC, or as in RFC 3339"`
	Until  string   `json:"until,omitempty" jsonschema:"only in conversations that changed before this time"`
	Limit  int      `json:"limit,omitempty" jsonschema:"at most so many (default 20, at most 100)"`
}

func (c *call) search(ctx context.Context, in *searchInput) (*answer, error) {
	q, err := c.searchQuery(ctx, in)
	if err != nil {
		return nil, err
	}
	behind := uint64(0)
	q.Behind = func(commits uint64) { behind = commits }
	hits, err := c.o.Search(ctx, *q)
	if err != nil {
		return nil, err
	}
	a := newAnswer(0)
	for i := range hits {
		more, err := c.addHit(ctx, a, &hits[i])
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	scope := c.scopeText()
	if in.Thread != "" {
		scope = "the conversation"
	}
	a.head = fmt.Sprintf("%s in %s.", amount.Plural(len(a.text), "result"), plain.Line(scope))
	if a.full || len(hits) == q.Limit && q.Limit < maxRows {
		a.note("There may be more: ask with a larger limit, or search for more words.")
	}
	if behind > 0 {
		a.note("The search index is being made: what the last %s added is not found yet. Ask again in a minute.", amount.Plural(int64(behind), "commit"))
	}
	if len(hits) > 0 {
		a.note("Read around a message with the tool read: thread, and its id as at.")
	}
	return a, nil
}

// searchQuery returns what an input asks for.
func (c *call) searchQuery(ctx context.Context, in *searchInput) (*SearchQuery, error) {
	if err := checked(append([]string{in.Query, in.Thread}, in.Roles...)...); err != nil {
		return nil, err
	}
	limits, text, err := filters.Read(in.Query, time.UTC)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	if text == "" {
		return nil, fmt.Errorf("query: %w: must have words to search for", lineage.ErrInvalid)
	}
	q := &SearchQuery{Text: text, Roles: in.Roles, Limit: rows(in.Limit)}
	filter := threadsInput{Agent: in.Agent, Since: in.Since, Until: in.Until}
	among, err := filter.query()
	if err != nil {
		return nil, err
	}
	if limits != nil {
		if err := filters.Add(&among, limits); err != nil {
			return nil, err
		}
	}
	if limits != nil || !c.scope.All() || in.Agent+in.Since+in.Until != "" {
		q.Among = c.threads(ctx, among)
	}
	if in.Thread != "" {
		t, err := c.thread(ctx, in.Thread)
		if err != nil {
			return nil, err
		}
		q.Thread = t.ID()
	}
	return q, nil
}

// The number of threads that are listed per message, and the maximum length of their titles.
const (
	maxHitThreads = 20
	maxHitTitle   = 200
)

// addHit adds a search result. It reports whether there is room for more.
func (c *call) addHit(ctx context.Context, a *answer, found *Hit) (more bool, err error) {
	h := &records.Hit{Rank: found.Rank, Snippet: found.Snippet, Threads: []records.HitThread{}}
	at, short := found.SummarizedAt, ""
	if e := found.Entry; e != nil {
		h.ID, h.Kind, h.Text, at = records.EntryID(e), e.Kind.String(), e.Excerpt(), e.CreatedAt
		switch e.Kind {
		case lineage.Message:
			h.Role = found.Role
		case lineage.Document:
			h.Name = e.Document
		default:
			h.Name = e.Filename
		}
		short = refs.ShortAddress(h.ID) + "  " + plain.Line(h.Role+h.Name)
	} else {
		h.ID, h.Kind, h.Text, short = found.Summary.String(), "summary", found.Text, "summary"
	}
	in, err := c.addHitThreads(ctx, h, found.Threads)
	if err != nil {
		return false, err
	}
	if !c.scope.All() && len(h.Threads) == 0 {
		return true, nil
	}
	if more, err = a.add(h); err != nil || !more {
		return false, err
	}
	snippet := cut(plain.Line(transcript.Uncoloured(found.Snippet)), 600)
	return a.quote("%s  %s  in %s\n    %s\n", short, stamp(at), in, snippet), nil
}

// addHitThreads adds the threads of a search result that are in the scope, and returns a text with the first one.
func (c *call) addHitThreads(ctx context.Context, h *records.Hit, ids []lineage.ThreadID) (text string, err error) {
	for i, id := range ids {
		if len(h.Threads) == maxHitThreads {
			return text + fmt.Sprintf(" and up to %d more", len(ids)-i), nil
		}
		t, err := c.o.Store.View().Thread(ctx, id)
		if errors.Is(err, lineage.ErrNotFound) || err == nil && !c.allows(t) {
			continue // deleted or moved out of the scope in the meantime
		}
		if err != nil {
			return "", err
		}
		thread := records.NewHitThread(t)
		thread.SourceID, thread.Title = c.scope.Chosen(thread.SourceID), cut(thread.Title, maxHitTitle)
		if h.Threads = append(h.Threads, thread); len(h.Threads) > 1 {
			continue
		}
		title, err := c.title(ctx, &lineage.ThreadInfo{ID: t.ID, SourceID: t.SourceID, Title: t.Title, Active: t.Active})
		if err != nil {
			return "", err
		}
		text = fmt.Sprintf("%s (%s)", title, refs.Short(t.ID))
	}
	if n := len(h.Threads); n > 1 && n < maxHitThreads {
		text += fmt.Sprintf(" and %d more", n-1)
	}
	return text, nil
}
