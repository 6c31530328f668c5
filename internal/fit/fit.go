// Package fit chooses the part of a history that fits into a budget of tokens: the latest
// messages, and summaries of those before them.
package fit

import (
	"context"
	"math"
	"slices"
)

// History is the history to choose from. Positions count from 1. Methods are called repeatedly for
// the same position, so an implementation should cache results.
type History interface {
	// Tokens returns the number of tokens of a position.
	Tokens(ctx context.Context, position uint64) (int, error)
	// Together reports whether a position, 2 or later, must not be sent without the one before it.
	Together(ctx context.Context, position uint64) (bool, error)
}

// Summary is a summary of the positions from First to Last.
type Summary struct {
	First, Last, Level uint64
	Tokens             int
}

// Options are the limits of a choice.
type Options struct {
	// Length is the length of the history. Messages before From are not sent.
	Length, From uint64
	// Room is the budget in tokens, or Unlimited.
	Room int
	// Summaries returns the existing summaries, ordered by First. It is called only if messages do
	// not fit.
	Summaries func(context.Context) ([]Summary, error)
}

// Overhead is the number of tokens that a message takes in addition to its text.
const Overhead = 4

// Unlimited is a budget for all messages.
const Unlimited = math.MaxInt / 4

// Choice is the part that fits: some summaries, and all messages from a position on.
type Choice struct {
	// Summaries are indexes into the summaries, in the order of the history.
	Summaries []int
	// Start is the first position that is sent as a message.
	Start uint64
	// Omitted is the number of positions that are neither sent nor summarized.
	Omitted uint64

	alone uint64 // from this position on, no position is summarized
}

// Choose chooses the part of a history to send: as many of the latest messages as fit, and
// summaries of those before them. Summaries use at most half of the budget, or more if all
// messages that they do not cover still fit. Positions that belong together are not separated.
func Choose(ctx context.Context, h History, o Options) (Choice, error) {
	p := plan{history: h, first: max(o.From, 1), last: o.Length, room: o.Room}
	if p.first > 1 {
		var err error
		if p.first, err = p.separable(ctx, p.first); err != nil {
			return Choice{}, err
		}
	}
	start, err := p.latest(ctx, p.room)
	if err != nil || start == 1 {
		return Choice{Start: start}, err
	}
	if p.summaries, err = o.Summaries(ctx); err != nil {
		return Choice{}, err
	}
	return p.best(ctx)
}

// best returns the best choice with summaries.
func (p *plan) best(ctx context.Context) (Choice, error) {
	usable := make([]int, len(p.summaries))
	highest := uint64(0)
	for i := range usable {
		usable[i], highest = i, max(highest, p.summaries[i].Level)
	}
	best, err := p.outline(ctx, usable)
	if err != nil {
		return Choice{}, err
	}
	// Higher levels have less detail: they are used only if lower levels omit more positions or
	// displace messages that have no summary.
	for ; highest > 0; highest-- {
		usable = slices.DeleteFunc(usable, func(i int) bool { return p.summaries[i].Level == highest })
		finer, err := p.outline(ctx, usable)
		if err != nil {
			return Choice{}, err
		}
		if finer.Omitted < best.Omitted || finer.Omitted == best.Omitted && finer.alone <= best.alone {
			best = finer
		}
	}
	return best, nil
}

type plan struct {
	history     History
	first, last uint64 // positions to choose from
	room        int
	summaries   []Summary
}

// latest returns the first position from which all messages fit in room and may be separated from
// those before.
func (p *plan) latest(ctx context.Context, room int) (start uint64, err error) {
	if p.room == Unlimited {
		return p.first, nil
	}
	start = max(p.last+1, p.first)
	for start > p.first {
		tokens, err := p.history.Tokens(ctx, start-1)
		if err != nil {
			return 0, err
		}
		if room -= tokens; room < 0 {
			break
		}
		start--
	}
	if start == p.first {
		return start, nil
	}
	return p.separable(ctx, start)
}

// separable returns the first position from start on that may be sent without the one before it.
func (p *plan) separable(ctx context.Context, start uint64) (uint64, error) {
	for ; start <= p.last; start++ {
		together, err := p.history.Together(ctx, start)
		if err != nil {
			return 0, err
		}
		if !together {
			break
		}
	}
	return start, nil
}

// outline returns the choice with the given summaries.
func (p *plan) outline(ctx context.Context, summaries []int) (c Choice, err error) {
	taken, err := p.affordable(ctx, p.chain(summaries))
	if err != nil {
		return Choice{}, err
	}
	room := p.room
	for _, i := range taken {
		room -= p.summaries[i].Tokens
	}
	for n := len(taken); n > 0; n = len(taken) {
		last := &p.summaries[taken[n-1]]
		without, err := p.latest(ctx, room+last.Tokens)
		if err != nil {
			return Choice{}, err
		}
		if without > last.First {
			break
		}
		room, taken = room+last.Tokens, taken[:n-1] // the messages that it summarizes fit
	}
	if c.Start, err = p.latest(ctx, room); err != nil {
		return Choice{}, err
	}
	c.alone, c.Omitted, c.Summaries = c.Start, c.Start-1, taken
	for _, i := range taken {
		s := &p.summaries[i]
		c.Omitted -= min(s.Last+1, c.Start) - s.First
		c.alone = max(c.alone, s.Last+1)
	}
	return c, nil
}

// chain returns summaries that do not overlap: at each step the next one by First, and of those
// with the same First the longest.
func (p *plan) chain(summaries []int) (chain []int) {
	next := uint64(1)
	for {
		best := -1
		for _, i := range summaries {
			s := &p.summaries[i]
			if s.First < next || s.Last > p.last {
				continue
			}
			if best < 0 || s.First < p.summaries[best].First || s.First == p.summaries[best].First && s.Last > p.summaries[best].Last {
				best = i
			}
		}
		if best < 0 {
			return chain
		}
		chain = append(chain, best)
		next = p.summaries[best].Last + 1
	}
}

// affordable returns the last summaries of the chain, as many as fit. Half of the budget is reserved for the messages after the
// chain, or less if they are shorter.
func (p *plan) affordable(ctx context.Context, chain []int) ([]int, error) {
	if len(chain) == 0 || p.room == Unlimited {
		return chain, nil
	}
	behind := 0
	for at := p.last; at >= p.first && at > p.summaries[chain[len(chain)-1]].Last && behind <= p.room; at-- {
		tokens, err := p.history.Tokens(ctx, at)
		if err != nil {
			return nil, err
		}
		behind += tokens
	}
	room, i := max(p.room/2, p.room-behind), len(chain)
	for i > 0 && room >= p.summaries[chain[i-1]].Tokens {
		room -= p.summaries[chain[i-1]].Tokens
		i--
	}
	return chain[i:], nil
}
