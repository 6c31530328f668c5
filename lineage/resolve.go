package lineage

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/fit"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/structure"
)

// ResolveOptions say what of a context is sent to a model.
type ResolveOptions struct {
	// Last, when not zero, is how many spans at the end are wanted at most. Summaries stand for
	// those before them, where there are any.
	Last uint64
	// Budget, when not zero, is how many tokens everything together may take. As many
	// of the latest messages as fit are kept as they are; summaries stand in for what
	// is before them, where there are any, and what is left after that is left out.
	// Summaries take half of the room at most, or more where all messages that they
	// do not stand for fit beside them.
	Budget int
	// Tokens counts those of a text. Default EstimateTokens.
	Tokens func(text string) int
	// KeepTogether reports of two entries that follow each other, in different spans,
	// that the later is not to be sent without the one before it. Neither Last nor
	// Budget cuts between them; where such a chain does not fit, the end of it is left
	// out, too. Where it is nil, the result of a tool is not sent without its call and all that is between
	// them: models refuse results of calls that they do not see. A result without the id of a call is not sent
	// without the span before it. What is in one span is never separated.
	KeepTogether func(before, after *Entry) bool
	// AllRevisions sends all revisions of a document, and not only the latest of those that would
	// be sent.
	AllRevisions bool
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
	m := &measured{store: c.store, tip: tip, length: length, opt: o, revisions: make(map[string]uint64), used: make(map[uint64][]fit.Use)}
	m.calls = fit.Calls{Length: length, Uses: m.uses}
	room := fit.Unlimited
	if o.Budget != 0 {
		room = o.Budget - r.Tokens
	}
	var summaries []*SummaryInfo
	choice, err := fit.Choose(ctx, m, fit.Options{
		Length: length, From: first, Room: room,
		Summaries: func(ctx context.Context) (all []fit.Summary, err error) {
			summaries, err = c.store.summariesOn(ctx, c.id, tip)
			for _, s := range summaries {
				all = append(all, fit.Summary{First: s.First, Last: s.Last, Level: s.Level, Tokens: o.Tokens(s.Text) + messageOverhead})
			}
			return all, err
		},
	})
	if err != nil {
		return nil, err
	}
	r.Omitted = choice.Omitted
	for _, i := range choice.Summaries {
		r.Parts = append(r.Parts, Part{Summary: summaries[i], Tokens: o.Tokens(summaries[i].Text) + messageOverhead})
	}
	if r.Parts, err = m.parts(ctx, r.Parts, choice.Start); err != nil {
		return nil, err
	}
	for i := range r.Parts {
		r.Tokens += r.Parts[i].Tokens
	}
	return r, nil
}

// measured is a history whose end was measured, as far as that was asked for.
type measured struct {
	store  *Store
	tip    SpanRef
	length uint64
	opt    ResolveOptions
	// positions are the last ones, from the last one backwards, and oldest is the
	// first entry of the one furthest back.
	positions []measure
	oldest    *Entry
	// revisions are the latest of documents in the positions.
	revisions map[string]uint64
	// used are the calls and results at the positions from reached on.
	used    map[uint64][]fit.Use
	reached uint64
	calls   fit.Calls
}

// measure is what a position takes, and whether ResolveOptions.KeepTogether keeps it with the one before
// it, which is known once that is measured, too.
type measure struct {
	tokens   int
	together bool
}

// Tokens implements fit.History.
func (m *measured) Tokens(ctx context.Context, position uint64) (int, error) {
	if err := m.measure(ctx, position); err != nil {
		return 0, err
	}
	return m.at(position).tokens, nil
}

// Together implements fit.History.
func (m *measured) Together(ctx context.Context, position uint64) (bool, error) {
	if m.opt.KeepTogether == nil {
		return m.calls.Together(ctx, position)
	}
	if m.length-(position-1) < uint64(len(m.positions)) {
		return m.at(position).together, nil
	}
	var before *Entry
	for e, err := range m.store.History(ctx, m.tip, structure.Window{From: position - 1, To: position}) {
		if err != nil {
			return false, err
		}
		if before != nil && e.Position == position {
			return m.opt.KeepTogether(before, e), nil
		}
		before = e
	}
	return false, nil
}

// at returns the measure of a position that has one.
func (m *measured) at(position uint64) *measure { return &m.positions[m.length-position] }

// measure measures the positions from one on. It reads backwards in growing steps.
func (m *measured) measure(ctx context.Context, from uint64) error {
	for next := m.length - uint64(len(m.positions)); next >= from; next = m.length - uint64(len(m.positions)) {
		first := uint64(1)
		if step := max(16, uint64(len(m.positions))); next > step {
			first = next - step + 1
		}
		step := make([]measure, next-first+1)
		entries, err := m.store.collect(ctx, m.tip, structure.Window{From: first, To: next})
		if err != nil {
			return err
		}
		for i := len(entries) - 1; i >= 0; i-- {
			e := entries[i]
			at := &step[next-e.Position]
			if m.opt.KeepTogether != nil && i > 0 && entries[i-1].Position != e.Position {
				at.together = m.opt.KeepTogether(entries[i-1], e)
			}
			if m.superseded(e) {
				continue
			}
			part, err := m.part(ctx, e)
			if err != nil {
				return err
			}
			at.tokens += part.Tokens
		}
		m.note(entries, first)
		if m.oldest != nil && m.opt.KeepTogether != nil {
			m.at(next + 1).together = m.opt.KeepTogether(entries[len(entries)-1], m.oldest)
		}
		m.positions, m.oldest = append(m.positions, step...), entries[0]
	}
	return nil
}

// uses returns the calls and results at a position.
func (m *measured) uses(ctx context.Context, position uint64) ([]fit.Use, error) {
	for m.reached == 0 || m.reached > position {
		last := m.length
		if m.reached > 0 {
			last = m.reached - 1
		}
		first := last - min(last-1, max(15, m.length-last))
		entries, err := m.store.collect(ctx, m.tip, structure.Window{From: first, To: last})
		if err != nil {
			return nil, err
		}
		m.note(entries, first)
	}
	return m.used[position], nil
}

// note remembers the calls and results in entries, which are all from a position up to those it knows.
func (m *measured) note(entries []*Entry, first uint64) {
	known := m.reached
	for _, e := range entries {
		if known == 0 || e.Position < known {
			if uses := e.uses(); len(uses) > 0 {
				m.used[e.Position] = append(m.used[e.Position], uses...)
			}
		}
	}
	if known == 0 || first < known {
		m.reached = first
	}
}

// uses returns the calls of tools and the results that a message has.
func (e *Entry) uses() []fit.Use {
	isJSON := e.Type == content.TypeJSON
	if e.Kind != Message || !isJSON && form.PlainPiece(e.Role) != OutputPiece {
		return nil
	}
	switch {
	case e.Body == nil && e.said != nil:
		return fit.Uses(message.Decode(e.said.Outline(), content.TypeJSON, e.Role))
	case e.Body == nil || !isJSON:
		return fit.Uses(message.Decode(nil, content.TypeText, e.Role))
	}
	return fit.Uses(message.Decode(e.Body, content.TypeJSON, e.Role))
}

// superseded reports whether an entry is a revision of a document of which a later one was met.
// Entries are met from the last one backwards.
func (m *measured) superseded(e *Entry) bool {
	if e.Kind != Document || m.opt.AllRevisions {
		return false
	}
	latest, met := m.revisions[e.Document]
	m.revisions[e.Document] = max(latest, e.Revision)
	return met && e.Revision <= latest
}

// part returns what is sent of an entry.
func (m *measured) part(ctx context.Context, e *Entry) (Part, error) {
	part := Part{Entry: e}
	switch {
	case e.Kind == Asset, e.Size > MostText:
		part.text = new(e.note())
	case e.Body == nil && !e.Erased:
		text, err := m.store.Text(ctx, e)
		if err != nil {
			return Part{}, err
		}
		part.text = &text
	}
	part.Tokens = m.opt.Tokens(part.Text()) + messageOverhead
	return part, nil
}

// parts appends the messages from a position on.
func (m *measured) parts(ctx context.Context, parts []Part, from uint64) ([]Part, error) {
	if from > m.length {
		return parts, nil
	}
	latest := make(map[string]int) // the part with the latest revision of a document
	superseded := make(map[int]bool)
	for e, err := range m.store.History(ctx, m.tip, structure.Window{From: from, To: m.length}) {
		if err != nil {
			return nil, err
		}
		if e.Kind == Document && !m.opt.AllRevisions {
			before, met := latest[e.Document]
			switch {
			case met && parts[before].Entry.Revision > e.Revision:
				continue
			case met:
				superseded[before] = true
			}
			latest[e.Document] = len(parts)
		}
		part, err := m.part(ctx, e)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if len(superseded) == 0 {
		return parts, nil
	}
	kept := parts[:0]
	for i, part := range parts {
		if !superseded[i] {
			kept = append(kept, part)
		}
	}
	return kept, nil
}
