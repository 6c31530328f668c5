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

// ResolveOptions configure Resolve.
type ResolveOptions struct {
	// Last, when not zero, limits the result to the last spans of the history. Earlier spans are replaced by
	// summaries, if there are any.
	Last uint64
	// Budget, when not zero, limits the total number of tokens. As many of the latest messages as
	// fit are included unchanged. Earlier ones are replaced by summaries if there are any, else
	// omitted. Summaries take at most half of the budget, or more if all messages after them still
	// fit. The system prompt of the context is always included, and counted. System messages of the
	// history are messages like the others.
	Budget int
	// Tokens counts the tokens of a text. Default EstimateTokens.
	Tokens func(text string) int
	// KeepTogether reports whether the later of two consecutive entries in different spans must not be sent without
	// the earlier one. Last and Budget never cut between them. A chain that does not fit is omitted including its
	// end. By default, a tool result is not sent without its call and everything between them, because models refuse
	// such results. A result without a call id is not sent without the span before it. Entries of one span are never
	// separated.
	KeepTogether func(before, after *Entry) bool
	// AllRevisions sends all revisions of a document instead of only the latest one in the result.
	AllRevisions bool
}

// Resolved is what to send to a model. The same context always resolves to the same result.
type Resolved struct {
	// SystemPrompt and Model are the overrides in force, empty if not set.
	SystemPrompt, Model string
	// Parts are in the order of the history.
	Parts []Part
	// Tokens is the total, including the system prompt.
	Tokens int
	// Omitted is the number of spans that are neither included nor summarized.
	Omitted uint64
	// Tip is the context's tip at the time of resolving. ExtendFrom(Tip) adds an answer to exactly what was sent.
	Tip SpanRef
	// Digest identifies the resolved history.
	Digest structure.Digest
}

// Part is a message or a summary. A summary may be followed by later messages that it covers, unchanged.
type Part struct {
	Entry   *Entry       // nil for a summary
	Summary *SummaryInfo // nil for a message
	Tokens  int
	text    *string // nil if it is Entry.Excerpt
}

// Text returns the text of the part, as Store.Text does. Tokens counts it. Bodies larger than MostText, assets and
// erased content are notes in brackets.
func (p *Part) Text() string {
	switch {
	case p.Summary != nil:
		return p.Summary.Text
	case p.text != nil:
		return *p.text
	}
	return p.Entry.Excerpt()
}

// MostText is the maximum size of a body that Resolve includes.
const MostText = 16 << 20

// Resolve returns what to send to a model: the whole history, its last n spans, or as much as fits
// in a token budget. It reads little more than it returns.
func (c *Context) Resolve(ctx context.Context, o ResolveOptions) (*Resolved, error) {
	if o.Budget < 0 {
		return nil, fmt.Errorf("token budget %d: %w", o.Budget, ErrInvalid)
	}
	if o.Tokens == nil {
		o.Tokens = EstimateTokens
	}
	r, err := c.resolveSettings(ctx, o)
	if err != nil {
		return nil, err
	}
	tip := r.Tip
	length, err := c.store.Position(ctx, tip)
	if err != nil {
		return nil, err
	}
	first := uint64(1)
	if o.Last != 0 && length > o.Last {
		first = length - o.Last + 1
	}
	m := &measured{store: c.store, tip: tip, length: length, opt: o, revisions: make(map[string]uint64), used: make(map[uint64][]fit.ToolPart)}
	m.calls = fit.Calls{Length: length, ToolParts: m.toolParts}
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
				all = append(all, fit.Summary{First: s.First, Last: s.Last, Level: s.Level, Tokens: o.Tokens(s.Text) + fit.Overhead})
			}
			return all, err
		},
	})
	if err != nil {
		return nil, err
	}
	r.Omitted = choice.Omitted
	for _, i := range choice.Summaries {
		r.Parts = append(r.Parts, Part{Summary: summaries[i], Tokens: o.Tokens(summaries[i].Text) + fit.Overhead})
	}
	if r.Parts, err = m.parts(ctx, r.Parts, choice.Start); err != nil {
		return nil, err
	}
	for i := range r.Parts {
		r.Tokens += r.Parts[i].Tokens
	}
	return r, nil
}

// resolveSettings returns the tip of the context, and its system prompt and model.
func (c *Context) resolveSettings(ctx context.Context, o ResolveOptions) (*Resolved, error) {
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
		r.Tokens = o.Tokens(r.SystemPrompt) + fit.Overhead
	}
	if overrides.Model != nil {
		r.Model = *overrides.Model
	}
	return r, nil
}

// measured is a history with the token counts of its last positions, as far as they were needed.
type measured struct {
	store  *Store
	tip    SpanRef
	length uint64
	opt    ResolveOptions
	// positions are the measures of the last positions, from the end backwards. oldest is the first entry of the
	// earliest one.
	positions []measure
	oldest    *Entry
	// revisions are the latest document revisions in positions.
	revisions map[string]uint64
	// used are the tool calls and results by position, known for positions from reached on.
	used    map[uint64][]fit.ToolPart
	reached uint64
	calls   fit.Calls
}

// measure is the token count of a position, and whether KeepTogether keeps it with the previous position. The latter
// is known once that position is measured.
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

// measure measures the positions down to from. It reads backwards in growing steps.
func (m *measured) measure(ctx context.Context, from uint64) error {
	for {
		known := uint64(len(m.positions))
		last := m.length - known // of this step
		if last < from {
			return nil
		}
		first := last + 1 - min(last, max(16, known))
		step := make([]measure, last-first+1)
		entries, err := m.store.collect(ctx, m.tip, structure.Window{From: first, To: last})
		if err != nil {
			return err
		}
		for i := len(entries) - 1; i >= 0; i-- {
			e := entries[i]
			at := &step[last-e.Position]
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
			m.at(last + 1).together = m.opt.KeepTogether(entries[len(entries)-1], m.oldest)
		}
		m.positions, m.oldest = append(m.positions, step...), entries[0]
	}
}

// toolParts returns the tool calls and results at a position.
func (m *measured) toolParts(ctx context.Context, position uint64) ([]fit.ToolPart, error) {
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

// note records the tool calls and results of entries, which begin at position first and reach up to the known ones.
func (m *measured) note(entries []*Entry, first uint64) {
	known := m.reached
	for _, e := range entries {
		if known == 0 || e.Position < known {
			if parts := e.toolParts(); len(parts) > 0 {
				m.used[e.Position] = append(m.used[e.Position], parts...)
			}
		}
	}
	if known == 0 || first < known {
		m.reached = first
	}
}

// toolParts returns the tool calls and results in a message.
func (e *Entry) toolParts() []fit.ToolPart {
	isJSON := e.Type == content.TypeJSON
	if e.Kind != Message || !isJSON && form.PlainPiece(e.Role) != OutputPiece {
		return nil
	}
	switch {
	case e.Body == nil && e.message != nil:
		return fit.ToolParts(message.Decode(e.message.Outline(), content.TypeJSON, e.Role))
	case e.Body == nil || !isJSON:
		return fit.ToolParts(message.Decode(nil, content.TypeText, e.Role))
	}
	return fit.ToolParts(message.Decode(e.Body, content.TypeJSON, e.Role))
}

// superseded reports whether an entry is a document revision and a later one was seen. Entries are seen from the last
// one backwards.
func (m *measured) superseded(e *Entry) bool {
	if e.Kind != Document || m.opt.AllRevisions {
		return false
	}
	latest, met := m.revisions[e.Document]
	m.revisions[e.Document] = max(latest, e.Revision)
	return met && e.Revision <= latest
}

// part returns the part for an entry.
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
	part.Tokens = m.opt.Tokens(part.Text()) + fit.Overhead
	return part, nil
}

// parts appends the messages from a position on.
func (m *measured) parts(ctx context.Context, parts []Part, from uint64) ([]Part, error) {
	if from > m.length {
		return parts, nil
	}
	latest := make(map[string]int) // by document, the part with its latest revision
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
	left := parts[:0]
	for i, part := range parts {
		if !superseded[i] {
			left = append(left, part)
		}
	}
	return left, nil
}
