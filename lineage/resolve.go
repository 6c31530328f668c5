package lineage

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/structure"
)

// ResolveOptions say what of a context is sent to a model.
type ResolveOptions struct {
	// Last, when not zero, is how many spans at the end are wanted at most.
	Last uint64
	// Budget, when not zero, is how many tokens everything together may take. The
	// latest messages are kept as they are; summaries stand in for what does not
	// fit, where there are any, and what is left after that is left out.
	Budget int
	// Tokens counts them. Default EstimateTokens.
	Tokens TokenCounter
}

// Resolved is what to send to a model. The same context resolves to the same.
type Resolved struct {
	// SystemPrompt and Model are the overrides in force, empty when there are none.
	SystemPrompt, Model string
	// Parts are in the order of the history.
	Parts []Part
	// Tokens is what all of it takes, the system prompt included.
	Tokens int
	// Omitted is how many spans are neither there nor summarized.
	Omitted uint64
	// Digest identifies the history that this was resolved from.
	Digest Digest
}

// Part is a message, or a summary that stands for several.
type Part struct {
	Entry   *Entry       // nil for a summary
	Summary *SummaryInfo // nil for a message; Store.Expand has what it stands for
	Tokens  int
}

// Text returns what the part says.
func (p *Part) Text() string {
	if p.Summary != nil {
		return p.Summary.Text
	}
	return p.Entry.Text()
}

// Resolve returns what to send to a model: all of the history, the last n, or
// what fits in a budget of tokens. It reads what it returns, and a little more
// when it has to find where a budget ends.
func (c *Context) Resolve(ctx context.Context, o ResolveOptions) (*Resolved, error) {
	if o.Budget < 0 {
		return nil, fmt.Errorf("token budget %d: %w", o.Budget, ErrInvalid)
	}
	if o.Tokens == nil {
		o.Tokens = TokenCounterFunc(EstimateTokens)
	}
	overrides, err := c.Effective(ctx)
	if err != nil {
		return nil, err
	}
	tip, err := c.Tip(ctx)
	if err != nil {
		return nil, err
	}
	r := &Resolved{}
	if r.Digest, err = c.store.engine.Digest(ctx, tip); err != nil {
		return nil, err
	}
	if overrides.SystemPrompt != nil {
		r.SystemPrompt = *overrides.SystemPrompt
		r.Tokens = o.Tokens.CountTokens(r.SystemPrompt) + messageOverhead
	}
	if overrides.Model != nil {
		r.Model = *overrides.Model
	}
	length, err := c.store.Position(ctx, tip)
	if err != nil {
		return nil, err
	}
	first := uint64(1)
	if o.Last != 0 && length > o.Last {
		first = length - o.Last + 1
	}
	p := plan{store: c.store, context: c.id, tip: tip, first: first, last: length, opt: o, result: r}
	return r, p.fill(ctx)
}

// plan decides what of a history fits.
type plan struct {
	store       *Store
	context     ContextID
	tip         SpanRef
	first, last uint64 // positions wanted
	opt         ResolveOptions
	result      *Resolved
}

func (p *plan) room() int { return p.opt.Budget - p.result.Tokens }

func (p *plan) fill(ctx context.Context) error {
	r := p.result
	if p.last == 0 || p.first > p.last {
		return nil
	}
	if p.opt.Budget == 0 {
		r.Omitted = p.first - 1
		return p.add(ctx, p.first)
	}
	// As many of the latest messages as fit by themselves.
	if _, fits, err := p.latest(ctx, p.room()); err != nil {
		return err
	} else if fits {
		r.Omitted = p.first - 1
		return p.add(ctx, p.first)
	}
	summaries, err := p.store.summariesOn(ctx, p.context, p.tip)
	if err != nil {
		return err
	}
	taken := p.affordable(p.chain(summaries))
	var start uint64
	for {
		room := p.room()
		for _, part := range taken {
			room -= part.Tokens
		}
		if start, _, err = p.latest(ctx, room); err != nil {
			return err
		}
		n := len(taken)
		if n == 0 || taken[n-1].Summary.First < start {
			break
		}
		taken = taken[:n-1] // what it stands for fits as it is
	}
	covered := uint64(0)
	for _, part := range taken {
		r.Parts = append(r.Parts, part)
		r.Tokens += part.Tokens
		covered += part.Summary.Covers()
		start = max(start, part.Summary.Last+1) // nothing is said twice
	}
	r.Omitted = start - 1 - covered
	return p.add(ctx, start)
}

// latest returns the first position from which on all messages fit in the room,
// and whether that is everything wanted. It reads backwards in growing steps.
func (p *plan) latest(ctx context.Context, room int) (start uint64, fits bool, err error) {
	start = p.last + 1
	for step := uint64(16); start > p.first; step *= 2 {
		from := p.first
		if start-p.first > step {
			from = start - step
		}
		var costs []int // by position from from
		for e, err := range p.store.History(ctx, p.tip, structure.Window{From: from, To: start - 1}) {
			if err != nil {
				return 0, false, err
			}
			for uint64(len(costs)) <= e.Position-from {
				costs = append(costs, 0)
			}
			costs[e.Position-from] += p.cost(e)
		}
		for i := len(costs) - 1; i >= 0; i-- {
			if room -= costs[i]; room < 0 {
				return start, false, nil
			}
			start--
		}
	}
	return start, true, nil
}

func (p *plan) cost(e *Entry) int {
	passage := passageOf(e)
	return p.opt.Tokens.CountTokens(passage.Text) + messageOverhead
}

// chain returns summaries that follow each other within what is wanted: at each
// step the next that begins, and of those that begin there the one that reaches
// furthest.
func (p *plan) chain(summaries []*SummaryInfo) []Part {
	var chain []Part
	next := p.first
	for {
		var best *SummaryInfo
		for _, s := range summaries {
			if s.First < next || s.Last > p.last {
				continue
			}
			if best == nil || s.First < best.First || s.First == best.First && s.Last > best.Last {
				best = s
			}
		}
		if best == nil {
			return chain
		}
		chain = append(chain, Part{Summary: best, Tokens: p.opt.Tokens.CountTokens(best.Text) + messageOverhead})
		next = best.Last + 1
	}
}

// affordable returns the end of the chain that leaves half of the room to
// messages: the latest summaries count most.
func (p *plan) affordable(chain []Part) []Part {
	room, i := p.room()/2, len(chain)
	for i > 0 && room >= chain[i-1].Tokens {
		room -= chain[i-1].Tokens
		i--
	}
	return chain[i:]
}

// add appends the messages from a position on.
func (p *plan) add(ctx context.Context, from uint64) error {
	if from > p.last {
		return nil
	}
	for e, err := range p.store.History(ctx, p.tip, structure.Window{From: from, To: p.last}) {
		if err != nil {
			return err
		}
		part := Part{Entry: e, Tokens: p.cost(e)}
		p.result.Parts = append(p.result.Parts, part)
		p.result.Tokens += part.Tokens
	}
	return nil
}
