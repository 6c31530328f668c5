package usage

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/records"
)

// Record returns the figures as a record.
func (f *Figures) Record() records.UsageFigures {
	tokens := func(k message.TokenKind) *int64 {
		if c := &f.Tokens[k]; c.Known {
			return &c.N
		}
		return nil
	}
	r := records.UsageFigures{
		Requests: f.Requests, Unpriced: f.Unpriced, Incomplete: f.Incomplete, StatedRequests: f.StatedBy,
		InputTokens: tokens(message.Input), CachedInputTokens: tokens(message.CachedInput), CacheWriteTokens: tokens(message.CacheWrite),
		CacheWrite1hTokens: tokens(message.CacheWrite1h), OutputTokens: tokens(message.Output), ReasoningTokens: tokens(message.Reasoning),
	}
	if f.Unpriced < f.Requests || !f.Cost.IsZero() {
		cost := json.Number(f.Cost.String())
		r.Cost = &cost
	}
	if f.StatedBy > 0 {
		cost := json.Number(f.Stated.String())
		r.StatedCost = &cost
	}
	return r
}

// record returns a row as a record.
func (row *Row) record(by []By) *records.Usage {
	r := &records.Usage{Shared: row.Shared, UsageFigures: row.Figures.Record()}
	into := map[By]**string{
		Day: &r.Day, Week: &r.Week, Month: &r.Month, Agent: &r.Agent, Model: &r.Model, Provider: &r.Provider,
		Project: &r.Project, Thread: &r.Thread, Branch: &r.Branch, GitBranch: &r.GitBranch, Machine: &r.Machine, Subagent: &r.Subagent, User: &r.User,
	}
	for i, key := range by {
		*into[key] = &row.Keys[i]
	}
	return r
}

// Records returns the rows of a report as records.
func (r *Report) Records(by []By) (all []*records.Usage) {
	for i := range r.Rows {
		all = append(all, r.Rows[i].record(by))
	}
	return all
}

// TotalRecord returns the sum of a report as a record.
func (r *Report) TotalRecord() *records.Usage {
	return &records.Usage{Total: true, UsageFigures: r.Total.Record(), UnpricedModels: slices.Sorted(maps.Keys(r.Unpriced)), Prices: r.Prices.Date}
}
