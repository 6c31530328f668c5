package lineage

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/structure"
)

// ResolveOptions say what of a context is sent to a model.
type ResolveOptions struct {
	// Last, when not zero, is how many spans at the end are wanted at most.
	Last uint64
	// Budget, when not zero, is how many tokens everything together may take. The
	// latest messages are kept as they are; summaries stand in for what does not
	// fit, where there are any, and what is left after that is left out. It cuts
	// between spans: what a model must see together, such as a call of a tool and
	// its result, is kept together by Context.ExtendTogether.
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
	text    string // where it is not the body that came along
}

// Text returns what the part says, which is what Tokens counts. The body of a
// message or document is read however large, up to MostText. What is larger, an
// asset and what was erased are told of in brackets: a model cannot be sent their
// bytes as text.
func (p *Part) Text() string {
	switch {
	case p.Summary != nil:
		return p.Summary.Text
	case p.text != "":
		return p.text
	}
	return p.Entry.Text()
}

// MostText is the size of the largest body that Resolve sends to a model.
const MostText = 16 << 20

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
	p := plan{store: c.store, context: c.id, tip: tip, first: first, last: length, opt: o, result: r, large: make(map[ContentID]int)}
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
	large       map[ContentID]int // what bodies cost that did not come along
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
	best, err := p.outline(ctx, summaries)
	if err != nil {
		return err
	}
	// Summaries of summaries say less: they stand where the finer ones leave out more
	// or push out messages.
	for highest := top(summaries); highest > 0; highest-- {
		summaries = slices.DeleteFunc(summaries, func(s *SummaryInfo) bool { return s.Level == highest })
		finer, err := p.outline(ctx, summaries)
		if err != nil {
			return err
		}
		if finer.omitted < best.omitted || finer.omitted == best.omitted && finer.start <= best.start {
			best = finer
		}
	}
	r.Parts, r.Omitted = best.summaries, best.omitted
	for _, part := range best.summaries {
		r.Tokens += part.Tokens
	}
	return p.add(ctx, best.start)
}

// outline is a way to fit a history into a budget: summaries, and all messages from
// a position on.
type outline struct {
	summaries []Part
	start     uint64
	omitted   uint64
}

// outline returns what fits with the given summaries.
func (p *plan) outline(ctx context.Context, summaries []*SummaryInfo) (o outline, err error) {
	taken := p.affordable(p.chain(summaries))
	room := p.room()
	for _, part := range taken {
		room -= part.Tokens
	}
	for n := len(taken); n > 0; n = len(taken) {
		last := taken[n-1]
		without, _, err := p.latest(ctx, room+last.Tokens)
		if err != nil {
			return outline{}, err
		}
		if without > last.Summary.First {
			break
		}
		room, taken = room+last.Tokens, taken[:n-1] // what it stands for fits as it is
	}
	if o.start, _, err = p.latest(ctx, room); err != nil {
		return outline{}, err
	}
	covered := uint64(0)
	for _, part := range taken {
		covered += part.Summary.Covers()
		o.start = max(o.start, part.Summary.Last+1) // nothing is said twice
	}
	o.summaries, o.omitted = taken, o.start-1-covered
	return o, nil
}

// top returns the highest level of the summaries.
func top(summaries []*SummaryInfo) (level uint64) {
	for _, s := range summaries {
		level = max(level, s.Level)
	}
	return level
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
			cost, err := p.cost(ctx, e)
			if err != nil {
				return 0, false, err
			}
			costs[e.Position-from] += cost
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

func (p *plan) cost(ctx context.Context, e *Entry) (int, error) {
	if cost, known := p.large[e.Content]; known && e.Body == nil && e.Kind != Asset {
		return cost, nil
	}
	part, err := p.part(ctx, e)
	if err == nil && e.Body == nil && e.Kind != Asset {
		p.large[e.Content] = part.Tokens
	}
	return part.Tokens, err
}

// part returns what is sent of an entry.
func (p *plan) part(ctx context.Context, e *Entry) (Part, error) {
	part := Part{Entry: e}
	switch {
	case e.Erased, e.Kind == Asset, e.Size > MostText:
		part.text = passageOf(e).Text
	case e.Body == nil:
		r, err := p.store.Body(ctx, e.Content)
		if err != nil {
			return Part{}, err
		}
		var text strings.Builder
		text.Grow(int(e.Size))
		if _, err := io.Copy(&text, r); err != nil {
			return Part{}, fmt.Errorf("span %v: %w", e.Span, err)
		}
		part.text = text.String()
	}
	part.Tokens = p.opt.Tokens.CountTokens(part.Text()) + messageOverhead
	return part, nil
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
		part, err := p.part(ctx, e)
		if err != nil {
			return err
		}
		p.result.Parts = append(p.result.Parts, part)
		p.result.Tokens += part.Tokens
	}
	return nil
}
