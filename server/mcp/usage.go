package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// usageKeys are the keys that usage groups by, in the order in which a row shows them. anywhere are those that reveal
// nothing about a conversation.
var (
	usageKeys = []string{"day", "week", "month", "agent", "model", "provider", "project", "thread", "branch", "git-branch", "machine", "subagent", "user"}
	anywhere  = []string{"day", "week", "month", "model", "provider"}
)

type usageInput struct {
	By     []string `json:"by,omitempty" jsonschema:"what to group by: day, week, month, agent, model, provider, project, thread, branch, git-branch, machine, subagent, user (default day)"`
	Thread string   `json:"thread,omitempty" jsonschema:"only this conversation: its id or title"`
	Since  string   `json:"since,omitempty" jsonschema:"only answers of this time or later: 2026-01-31 in UTC, or as in RFC 3339"`
	Until  string   `json:"until,omitempty" jsonschema:"only answers before this time"`
	From   int      `json:"from,omitempty" jsonschema:"continue with this row"`
}

func (c *call) usage(ctx context.Context, in *usageInput) (*answer, error) {
	if err := checked(append([]string{in.Thread}, in.By...)...); err != nil {
		return nil, err
	}
	q := UsageQuery{By: in.By, Users: c.scope.Users, Projects: c.scope.Projects}
	if len(q.By) == 0 {
		q.By = []string{"day"}
	}
	for i, key := range q.By {
		if !slices.Contains(usageKeys, key) || slices.Contains(q.By[:i], key) {
			return nil, fmt.Errorf("by %.40q: %w: must be one of %s, once", key, lineage.ErrInvalid, strings.Join(usageKeys, ", "))
		}
		// An answer counts in the conversation that had it first, which may belong to another user.
		if len(c.scope.Users) > 0 && !slices.Contains(anywhere, key) {
			return nil, fmt.Errorf("by %s: %w: a client for some users asks by %s", key, lineage.ErrInvalid, strings.Join(anywhere, ", "))
		}
	}
	var err error
	if q.Since, err = moment("since", in.Since); err != nil {
		return nil, err
	}
	if q.Until, err = moment("until", in.Until); err != nil {
		return nil, err
	}
	if in.Thread != "" {
		t, err := c.thread(ctx, in.Thread)
		if err != nil {
			return nil, err
		}
		q.Thread = t.ID()
	}
	all, total, err := c.o.Usage(ctx, q)
	if err != nil {
		return nil, err
	}
	a := newAnswer(0)
	if _, err := a.add(total); err != nil {
		return nil, err
	}
	a.head = "In all: " + figures(&total.UsageFigures)
	from := min(max(in.From, 0), len(all))
	for i, r := range all[from:] {
		r = withShortKeys(r)
		fits, err := a.add(r)
		if err != nil {
			return nil, err
		}
		if !fits || i == maxRows || !a.quote("%s  %s\n", plain.Line(keysOf(r, q.By)), figures(&r.UsageFigures)) {
			a.next = given(map[string]any{"thread": in.Thread, "since": in.Since, "until": in.Until, "by": q.By, "from": from + i})
			break
		}
	}
	return a, nil
}

// maxKey limits a key of a row in an answer, in bytes, so that a row always fits.
const maxKey = 200

// withShortKeys returns a row whose long keys are cut.
func withShortKeys(r *records.Usage) *records.Usage {
	short := *r
	for _, key := range []**string{&short.Day, &short.Week, &short.Month, &short.Agent, &short.Model, &short.Provider, &short.Project, &short.Thread,
		&short.Branch, &short.GitBranch, &short.Machine, &short.Subagent, &short.User} {
		if *key != nil && len(**key) > maxKey {
			text := cut(**key, maxKey) + "…"
			*key = &text
		}
	}
	return &short
}

// keysOf returns the keys of a row as text.
func keysOf(r *records.Usage, by []string) string {
	all := map[string]*string{
		"day": r.Day, "week": r.Week, "month": r.Month, "agent": r.Agent, "model": r.Model, "provider": r.Provider, "project": r.Project,
		"thread": r.Thread, "branch": r.Branch, "git-branch": r.GitBranch, "machine": r.Machine, "subagent": r.Subagent, "user": r.User,
	}
	var keys []string
	for _, key := range by {
		text := "-"
		if value := all[key]; value != nil && *value != "" {
			text = *value
		}
		keys = append(keys, text)
	}
	line := strings.Join(keys, ", ")
	if r.Shared {
		line += " (counts in another conversation)"
	}
	return line
}

// figures returns tokens and costs in a line. Unknown values are a dash.
func figures(f *records.UsageFigures) string {
	number := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	cost := "-"
	if f.Cost != nil {
		cost = "$" + f.Cost.String()
	}
	if f.Unpriced > 0 {
		cost += fmt.Sprintf(" and %s without a price", amount.Plural(f.Unpriced, "request"))
	}
	return fmt.Sprintf("%s, input %s, cached %s, written %s, output %s tokens, cost %s", amount.Plural(f.Requests, "request"), number(f.InputTokens), number(f.CachedInputTokens),
		number(f.WrittenTokens()), number(f.OutputTokens), cost)
}
