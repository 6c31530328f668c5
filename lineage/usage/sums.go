package usage

import (
	"fmt"

	"github.com/lineage-store/lineage/lineage/message"
)

// sums are sums of figures.
type sums struct {
	answers, requests, covers int64
	tokens                    [message.TokenKinds]int64
	cost, costs               int64 // the cost that sources state, in 10^-12 dollars, and the number of answers with one
}

// add adds sums or, with factor -1, subtracts them. The results are limited to most in both directions.
func (s *sums) add(o *sums, factor int64) {
	add := func(to *int64, n int64) {
		switch n *= factor; {
		case n > 0 && *to > most-n:
			*to = most
		case n < 0 && *to < -most-n:
			*to = -most
		default:
			*to += n
		}
	}
	add(&s.answers, o.answers)
	add(&s.requests, o.requests)
	add(&s.covers, o.covers)
	for k := range s.tokens {
		add(&s.tokens[k], o.tokens[k])
	}
	add(&s.cost, o.cost)
	add(&s.costs, o.costs)
}

// totalKey is the key of a row of the totals.
type totalKey struct {
	run, quarter, model int64
	bracket             int
	known               uint8
}

// most limits sums, so that they cannot overflow.
const most = 9_000_000_000_000_000_000

var mostText = fmt.Sprint(int64(most))
