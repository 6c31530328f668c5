package usage

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage/prices"
	"github.com/lineage-store/lineage/structure"
)

// By is a key to group by.
type By string

// The keys to group by. Days, weeks (ISO 8601) and months are those of the query's time zone.
const (
	Day       By = "day"
	Week      By = "week"
	Month     By = "month"
	Agent     By = "agent"
	Model     By = "model"
	Provider  By = "provider"
	Project   By = "project" // the working directory of the session
	Thread    By = "thread"
	Branch    By = "branch"     // of the thread: the oldest one that sees the answer
	GitBranch By = "git-branch" // that was checked out when the session began
	Machine   By = "machine"    // that the session ran on
	Subagent  By = "subagent"
	User      By = "user"
)

// Keys are all keys to group by.
var Keys = []By{Day, Week, Month, Agent, Model, Provider, Project, Thread, Branch, GitBranch, Machine, Subagent, User}

// Query selects what to report. The zero value reports everything in one row.
type Query struct {
	By []By
	// Since and Until limit the time of answers; Until is exclusive. Zero means no limit. With a limit, answers of
	// unknown time are excluded.
	Since, Until time.Time
	// Zone is the time zone of days, weeks and months. Default UTC.
	Zone *time.Location
	// Thread, if not zero, limits the report to the answers in the history of a thread, including those that it
	// shares with others (see Row.Shared). Users, if not empty, limits it to the threads of these users.
	Thread structure.ThreadID
	Users  []string
	// CountedIn, if not nil, limits the report to the answers that count in these threads, each of which counts in one.
	CountedIn []structure.ThreadID
	// Agent and Model, if not empty, limit the report to an agent and a model; Projects to the answers in one of
	// these projects.
	Agent, Model string
	Projects     []string
	// Prices is the price table. Default prices.Default.
	Prices *prices.Table
}

// Report is the result of a query.
type Report struct {
	// Rows are sorted by their keys.
	Rows []Row
	// Total is the sum of the rows.
	Total Figures
	// Unpriced are the models without a price, with their numbers of requests.
	Unpriced map[string]int64
	// Prices is the price table that was used.
	Prices *prices.Table
}

// Row is a row of a report.
type Row struct {
	// Keys are the row's values of the keys in Query.By, in that order. An unknown value is empty. A thread is
	// represented by its id.
	Keys []string
	// Shared is set, with Query.Thread, for answers that are counted in another thread. They have rows of their own.
	Shared bool
	Figures
}

// Figures are the cost of answers.
type Figures struct {
	// Requests is the number of answers.
	Requests int64
	// Tokens are the numbers of tokens by kind.
	Tokens [message.TokenKinds]Count
	// Cost is the cost of the tokens of all answers with a price. Unpriced is the number of answers without a price,
	// and Incomplete the number of those whose input or output is unknown.
	Cost                 prices.Money
	Unpriced, Incomplete int64
	// Stated is the cost that sources state themselves, and StatedBy the number of answers with such a cost.
	Stated   prices.Money
	StatedBy int64
}

// Count is a number of tokens.
type Count struct {
	// N is the sum of the known numbers, and Unknown the number of answers without one. Known is set if any answer
	// has one.
	N, Unknown int64
	Known      bool
}

// reporter computes a report in a transaction.
type reporter struct {
	tx           *sql.Tx
	q            *Query
	report       *Report
	rows         map[string]*Row
	models       map[int64]modelName
	attributions *attributions
	thread       int64           // number of Query.Thread
	countedIn    map[string]bool // Query.CountedIn, nil for all
}

func (r *reporter) readModels(ctx context.Context) error {
	return each(ctx, r.tx, func(scan func(...any) error) error {
		var n int64
		var m modelName
		err := scan(&n, &m.name, &m.provider, &m.tier)
		r.models[n] = m
		return err
	}, `SELECT number, name, provider, tier FROM models`)
}

// answerGroup is a set of answers with the same run, time and model, which belong to the same row.
type answerGroup struct {
	run, model int64
	seq        int64 // of one answer, 0 for those of a run whose attribution has one end
	time       int64 // in milliseconds, -1 if it is unknown
	input      int64 // of one answer
	known      uint8
	shared     bool
	sums
}

// add adds answers to their row.
func (r *reporter) add(ctx context.Context, g *answerGroup) error {
	m := r.models[g.model]
	at := time.Time{}
	if g.time >= 0 {
		at = time.UnixMilli(g.time)
	}
	q := r.q
	if !q.Since.IsZero() && (g.time < 0 || at.Before(q.Since)) || !q.Until.IsZero() && (g.time < 0 || !at.Before(q.Until)) || q.Model != "" && m.name != q.Model {
		return nil
	}
	var p *attribution
	if q.Agent != "" || len(q.Projects) > 0 || r.countedIn != nil || slices.ContainsFunc(q.By, ofAttribution) {
		var err error
		if p, err = r.attributions.of(ctx, g.run, r.byBranch(), r.thread); err != nil {
			return err
		}
		if r.countedIn != nil && !r.countedIn[p.thread] || q.Agent != "" && p.agent != q.Agent || len(q.Projects) > 0 && !slices.Contains(q.Projects, p.project) {
			return nil
		}
	}
	keys := make([]string, len(q.By))
	for i, key := range q.By {
		keys[i] = r.key(key, at, m, p, g.seq)
	}
	id := strings.Join(keys, "\x00")
	if g.shared {
		id += "\x00shared"
	}
	row := r.rows[id]
	if row == nil {
		row = &Row{Keys: keys, Shared: g.shared}
		r.rows[id] = row
	}
	r.price(row, g, m, at)
	return nil
}

func ofAttribution(by By) bool {
	switch by {
	case Day, Week, Month, Model, Provider:
		return false
	}
	return true
}

// byBranch reports whether the end of a run matters.
func (r *reporter) byBranch() bool {
	return slices.Contains(r.q.By, Branch) || slices.Contains(r.q.By, Subagent)
}

func (r *reporter) key(by By, at time.Time, m modelName, p *attribution, seq int64) string {
	local := at.In(r.q.Zone)
	switch by {
	case Day, Week, Month:
		if at.IsZero() {
			return ""
		}
		switch by {
		case Day:
			return local.Format(time.DateOnly)
		case Month:
			return local.Format("2006-01")
		}
		year, week := local.ISOWeek()
		return fmt.Sprintf("%04d-W%02d", year, week)
	case Model:
		if m.tier != "" {
			return m.name + " (" + m.tier + ")"
		}
		return m.name
	case Provider:
		return m.provider
	case Agent:
		return p.agent
	case Project:
		return p.project
	case Thread:
		return p.thread
	case Branch:
		return p.at(seq).branch
	case GitBranch:
		return p.gitBranch
	case Machine:
		return p.machine
	case Subagent:
		return p.at(seq).subagent
	}
	return p.user
}

// price adds the figures and the cost of a group to a row.
func (r *reporter) price(row *Row, g *answerGroup, m modelName, at time.Time) {
	f := Figures{Requests: g.requests, Stated: prices.FromPico(g.cost), StatedBy: g.costs}
	for k := range f.Tokens {
		c := &f.Tokens[k]
		if c.Known = g.known&(1<<k) != 0; c.Known {
			c.N, c.Unknown = g.tokens[k], -g.covers
		} else {
			c.Unknown = g.requests
		}
	}
	cost, ok := r.q.Prices.Price(prices.Use{
		Provider: m.provider, Model: m.name, Tier: m.tier, At: at, Input: g.input, Requests: g.requests, Tokens: message.MakeTokens(g.tokens, g.known),
	})
	if ok {
		f.Cost = cost
	} else {
		f.Unpriced = g.requests
		name := m.name
		if m.tier != "" {
			name += " (" + m.tier + ")"
		}
		r.report.Unpriced[name] += g.requests
	}
	row.Figures.add(&f)
}

// add adds figures. Of tokens that a record adds to answers stated elsewhere, Unknown is negative: see settle.
func (f *Figures) add(o *Figures) {
	f.Requests += o.Requests
	f.Cost, f.Unpriced = f.Cost.Add(o.Cost), f.Unpriced+o.Unpriced
	f.Stated, f.StatedBy = f.Stated.Add(o.Stated), f.StatedBy+o.StatedBy
	for k := range f.Tokens {
		c, d := &f.Tokens[k], &o.Tokens[k]
		if c.N += d.N; c.N < 0 || c.N > most { // absurd data
			c.N = most
		}
		c.Known, c.Unknown = c.Known || d.Known, c.Unknown+d.Unknown
	}
}

// settle completes the figures after everything was added.
func (f *Figures) settle() {
	for k := range f.Tokens {
		f.Tokens[k].Unknown = max(f.Tokens[k].Unknown, 0)
	}
	in := f.Tokens[message.Input].Unknown
	f.Incomplete = max(in, f.Tokens[message.Output].Unknown)
}
