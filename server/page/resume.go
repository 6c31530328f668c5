package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxLosses limits the number of listed reasons for losses.
const maxLosses = 40

// resumeView shows how a history can be continued in an agent.
type resumeView struct {
	*subject
	Position, Length uint64
	Command          string
	Agents           []usageChoice
	Made             *Resumed
	Losses           []lossRow
	MoreLosses       int
	Problem          string
}

// lossRow is a reason for losses.
type lossRow struct {
	First  uint64 // the first message affected, or 0
	Reason string
	More   int
}

// resume shows the command that continues a history in an agent, and what would be lost. Nothing is written.
func (p *Page) resume(w http.ResponseWriter, r *http.Request) error {
	ctx, q := r.Context(), r.URL.Query()
	subject, err := p.subjectOf(r, q.Get("in"))
	if err != nil {
		return err
	}
	at, err := positionOf(r, "at")
	if err != nil {
		return err
	}
	v := &resumeView{subject: subject}
	if v.Length, err = p.o.Store.Position(ctx, subject.Tip); err != nil {
		return err
	}
	agent := q.Get("agent")
	if agent != "" && !slices.Contains(p.o.Agents, agent) {
		return refuse("There is no agent %.60q. There are %s.", agent, strings.Join(p.o.Agents, ", "))
	}
	query := ResumeQuery{subject.Info.ID, subject.Tip, agent}
	v.Position, v.Command = v.Length, subject.Resume
	switch {
	case at > 0 && at < v.Length:
		if query.At, err = p.o.Store.At(ctx, subject.Tip, at); err != nil {
			return err
		}
		v.Position, v.Command = at, "lineage resume --thread "+subject.Info.ID.Short()+" "+query.At.String()
	case subject.Context != "" && subject.Context != subject.Info.Active.String():
		v.Command = "lineage resume --thread " + subject.Info.ID.Short() + " " + subject.Context
	case subject.Context == "" && subject.In != "":
		v.Command = "lineage resume --thread " + subject.Info.ID.Short() + " " + subject.Tip.String()
	}
	if agent != "" {
		v.Command += " --agent " + agent
	}
	for _, name := range p.o.Agents {
		choice := url.Values{"agent": {name}}
		if subject.In != "" {
			choice.Set("in", subject.In)
		}
		if at > 0 {
			choice.Set("at", fmt.Sprint(at))
		}
		v.Agents = append(v.Agents, usageChoice{name, "/t/" + subject.ID + "/resume?" + choice.Encode(), name == agent || agent == "" && name == subject.Agent})
	}
	if v.Length == 0 {
		v.Problem = "There is no message to resume from."
	} else if err := p.tryResume(ctx, v, query); err != nil {
		return err
	}
	return p.show(w, r, http.StatusOK, "resume", &pageData{Title: "Resume · " + subject.Title, Body: v})
}

// tryResume prepares a session without writing it.
func (p *Page) tryResume(ctx context.Context, v *resumeView, q ResumeQuery) (err error) {
	v.Made, err = p.o.Resume(ctx, q)
	if errors.Is(err, ErrNoSession) {
		v.Made, v.Problem = nil, err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	index := make(map[string]int)
	for _, l := range v.Made.Losses {
		if i, known := index[l.Reason]; known {
			v.Losses[i].More++
			continue
		}
		if len(v.Losses) == maxLosses {
			v.MoreLosses++
			continue
		}
		index[l.Reason] = len(v.Losses)
		v.Losses = append(v.Losses, lossRow{First: l.Position, Reason: l.Reason})
	}
	return nil
}
