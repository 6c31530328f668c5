package usage

import (
	"time"

	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage/prices"
)

// Of returns the figures of answers given at a time.
func Of(answers []message.Answer, at time.Time, table *prices.Table) Figures {
	r := &reporter{q: &Query{Prices: table}, report: &Report{Unpriced: make(map[string]int64)}}
	row := &Row{}
	for i := range answers {
		a := &answers[i]
		if a.Total != nil && !a.LastStated {
			continue // the counter before it is unknown here
		}
		answer := figures{known: a.Tokens.Known(), sums: sums{1, a.Requests, a.Covers, a.Tokens.Array(), 0, 0}}
		if cost, ok := stated(a.Cost); ok {
			answer.cost, answer.costs = cost, 1
		}
		r.price(row, &answerGroup{known: answer.known, input: answer.input(), sums: answer.sums}, modelName{a.Model, a.Provider, a.Tier}, at)
	}
	row.settle()
	return row.Figures
}
