package lineage

import (
	"context"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/structure"
)

// ResolveOptions say what of a context is sent to a model.
type ResolveOptions struct {
	// Last, when not zero, is how many spans at the end are wanted at most.
	Last uint64
	// Budget, when not zero, is how many tokens everything together may take. As many
	// of the latest messages as fit are kept as they are; summaries stand in for what
	// is before them, where there are any, and what is left after that is left out.
	// Summaries take half of the room at most, or more where all messages that they
	// do not stand for fit beside them.
	Budget int
	// Tokens counts those of a text. Default EstimateTokens.
	Tokens func(text string) int
	// KeepTogether tells of two entries that follow each other, in different spans,
	// that the later is not to be sent without the one before it. Neither Last nor
	// Budget cuts between them; where such a chain does not fit, the end of it is left
	// out, too. By default it is true where the later is the result of a tool, by its role:
	// models refuse results of calls that they do not see. What is in one span is never parted.
	KeepTogether func(before, after *Entry) bool
}

// followsCall is the default of ResolveOptions.KeepTogether.
func followsCall(_, after *Entry) bool {
	return after.Kind == Message && (after.Role == "tool" || after.Role == "function")
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
	// Tip is where the context stood: ExtendFrom there adds an answer to what was sent.
	Tip SpanRef
	// Digest identifies the history that this was resolved from.
	Digest structure.Digest
}

// Part is a message, or a summary that stands for several. Of these the later ones may
// follow as they are.
type Part struct {
	Entry   *Entry       // nil for a summary
	Summary *SummaryInfo // nil for a message
	Tokens  int
	text    *string // where it is not the body that came along
}

// Text returns what the part says, as Entry.Text does, which is what Tokens counts. A body is
// read whatever its size up to MostText. A larger one, an asset and erased content are notes
// in brackets.
func (p *Part) Text() string {
	switch {
	case p.Summary != nil:
		return p.Summary.Text
	case p.text != nil:
		return *p.text
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
		o.Tokens = EstimateTokens
	}
	if o.KeepTogether == nil {
		o.KeepTogether = followsCall
	}
	overrides, err := c.Effective(ctx)
	if err != nil {
		return nil, err
	}
	tip, err := c.Tip(ctx)
	if err != nil {
		return nil, err
	}
	r := &Resolved{Tip: tip}
	if r.Digest, err = c.store.engine.Digest(ctx, tip); err != nil {
		return nil, err
	}
	if overrides.SystemPrompt != nil {
		r.SystemPrompt = *overrides.SystemPrompt
		r.Tokens = o.Tokens(r.SystemPrompt) + messageOverhead
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
	// measured are the last positions, from the last one backwards, and oldest is the
	// first entry of the one furthest back.
	measured []measure
	oldest   *Entry
}

// measure is what a position takes, and whether it is kept together with the one before
// it, which is known once that is measured, too.
type measure struct {
	tokens   int
	together bool
}

func (p *plan) room() int { return p.opt.Budget - p.result.Tokens }

func (p *plan) fill(ctx context.Context) error {
	r := p.result
	if err := p.begin(ctx); err != nil {
		return err
	}
	if p.last == 0 || p.first > p.last {
		r.Omitted = p.last
		return nil
	}
	if p.opt.Budget == 0 {
		r.Omitted = p.first - 1
		return p.add(ctx, p.first)
	}
	// As many of the latest messages as fit by themselves.
	if start, err := p.latest(ctx, p.room()); err != nil {
		return err
	} else if start == p.first {
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
	// or push out messages that nothing stands for.
	for highest := top(summaries); highest > 0; highest-- {
		summaries = slices.DeleteFunc(summaries, func(s *SummaryInfo) bool { return s.Level == highest })
		finer, err := p.outline(ctx, summaries)
		if err != nil {
			return err
		}
		if finer.omitted < best.omitted || finer.omitted == best.omitted && finer.alone <= best.alone {
			best = finer
		}
	}
	r.Parts, r.Omitted = best.summaries, best.omitted
	for _, part := range best.summaries {
		r.Tokens += part.Tokens
	}
	return p.add(ctx, best.start)
}

// begin moves the first position wanted to where a cut may be.
func (p *plan) begin(ctx context.Context) error {
	if p.first == 1 || p.first > p.last {
		return nil
	}
	var before *Entry
	for e, err := range p.store.History(ctx, p.tip, structure.Window{From: p.first - 1, To: p.last}) {
		if err != nil {
			return err
		}
		if before != nil && e.Position != before.Position && !p.opt.KeepTogether(before, e) {
			p.first = e.Position
			return nil
		}
		before = e
	}
	p.first = p.last + 1
	return nil
}

// outline is a way to fit a history into a budget: summaries, and all messages from
// a position on.
type outline struct {
	summaries []Part
	start     uint64
	alone     uint64 // from there on messages have no summary
	omitted   uint64
}

// outline returns what fits with the given summaries.
func (p *plan) outline(ctx context.Context, summaries []*SummaryInfo) (o outline, err error) {
	taken, err := p.affordable(ctx, p.chain(summaries))
	if err != nil {
		return outline{}, err
	}
	room := p.room()
	for _, part := range taken {
		room -= part.Tokens
	}
	for n := len(taken); n > 0; n = len(taken) {
		last := taken[n-1]
		without, err := p.latest(ctx, room+last.Tokens)
		if err != nil {
			return outline{}, err
		}
		if without > last.Summary.First {
			break
		}
		room, taken = room+last.Tokens, taken[:n-1] // what it stands for fits as it is
	}
	if o.start, err = p.latest(ctx, room); err != nil {
		return outline{}, err
	}
	o.alone, o.omitted = o.start, o.start-1
	for _, part := range taken {
		o.omitted -= min(part.Summary.Last+1, o.start) - part.Summary.First
		o.alone = max(o.alone, part.Summary.Last+1)
	}
	o.summaries = taken
	return o, nil
}

// top returns the highest level of the summaries.
func top(summaries []*SummaryInfo) (level uint64) {
	for _, s := range summaries {
		level = max(level, s.Level)
	}
	return level
}

// latest returns the first position from which on all messages fit in the room and may be
// cut off from those before.
func (p *plan) latest(ctx context.Context, room int) (start uint64, err error) {
	start = p.last + 1
	for start > p.first {
		if err := p.measure(ctx, start-1); err != nil {
			return 0, err
		}
		if room -= p.at(start - 1).tokens; room < 0 {
			break
		}
		start--
	}
	for start > p.first && start <= p.last && p.at(start).together {
		start++
	}
	return start, nil
}

// at returns the measure of a position that has one.
func (p *plan) at(position uint64) *measure { return &p.measured[p.last-position] }

// measure measures the positions from one on. It reads backwards in growing steps.
func (p *plan) measure(ctx context.Context, from uint64) error {
	for next := p.last - uint64(len(p.measured)); next >= from; next = p.last - uint64(len(p.measured)) {
		first := p.first
		if step := max(16, uint64(len(p.measured))); next-p.first >= step {
			first = next - step + 1
		}
		step := make([]measure, next-first+1)
		var oldest, before *Entry
		for e, err := range p.store.History(ctx, p.tip, structure.Window{From: first, To: next}) {
			if err != nil {
				return err
			}
			part, err := p.part(ctx, e)
			if err != nil {
				return err
			}
			m := &step[next-e.Position]
			m.tokens += part.Tokens
			if before == nil {
				oldest = e
			} else if before.Position != e.Position {
				m.together = p.opt.KeepTogether(before, e)
			}
			before = e
		}
		if p.oldest != nil {
			p.at(next + 1).together = p.opt.KeepTogether(before, p.oldest)
		}
		p.measured, p.oldest = append(p.measured, step...), oldest
	}
	return nil
}

// part returns what is sent of an entry.
func (p *plan) part(ctx context.Context, e *Entry) (Part, error) {
	part := Part{Entry: e}
	switch {
	case e.Kind == Asset, e.Size > MostText:
		part.text = new(e.note())
	case e.Body == nil && !e.Erased:
		text, err := p.store.Text(ctx, e)
		if err != nil {
			return Part{}, err
		}
		part.text = &text
	}
	part.Tokens = p.opt.Tokens(part.Text()) + messageOverhead
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
		chain = append(chain, Part{Summary: best, Tokens: p.opt.Tokens(best.Text) + messageOverhead})
		next = best.Last + 1
	}
}

// affordable returns the end of the chain that there is room for: the latest summaries
// count most. Half of the room is left to messages, or what all of them take that come
// behind the chain, if that is less.
func (p *plan) affordable(ctx context.Context, chain []Part) ([]Part, error) {
	if len(chain) == 0 {
		return nil, nil
	}
	behind := 0
	for at := p.last; at > chain[len(chain)-1].Summary.Last && behind <= p.room(); at-- {
		if err := p.measure(ctx, at); err != nil {
			return nil, err
		}
		behind += p.at(at).tokens
	}
	room, i := max(p.room()/2, p.room()-behind), len(chain)
	for i > 0 && room >= chain[i-1].Tokens {
		room -= chain[i-1].Tokens
		i--
	}
	return chain[i:], nil
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
