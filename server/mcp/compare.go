package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/difference"
	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// maxLine limits the line of a message in a list, in bytes.
const maxLine = 240

// line returns a message in one line.
func (c *call) line(ctx context.Context, e *lineage.Entry) (string, error) {
	m, err := c.o.Store.Transcribe(ctx, e, records.MaxPreview)
	if err != nil {
		return "", err
	}
	speaker, text := transcript.Line(m)
	return plain.Line(speaker) + ": " + cut(plain.Line(text), maxLine), nil
}

type treeInput struct {
	Thread string `json:"thread,omitempty" jsonschema:"the conversation: its id or title (default the one that changed last)"`
	From   int    `json:"from,omitempty" jsonschema:"continue with this row"`
	Limit  int    `json:"limit,omitempty" jsonschema:"at most so many rows (default 20, at most 100)"`
}

func (c *call) tree(ctx context.Context, in *treeInput) (*answer, error) {
	if err := checked(in.Thread); err != nil {
		return nil, err
	}
	t, err := c.thread(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	g, err := graph.Of(ctx, c.o.Store, t)
	if err != nil {
		return nil, err
	}
	d := g.Draw(graph.Options{Lanes: 32})
	if len(d.Rows) == 0 {
		a := newAnswer(0)
		a.head = fmt.Sprintf("Conversation %s. It has no messages.", refs.Short(t.ID()))
		return a, nil
	}
	a, from, limit := newAnswer(0), max(in.From, 0), rows(in.Limit)
	shown := 0
	for i := from; i < len(d.Rows); i++ {
		if shown == limit {
			a.full = true
			break
		}
		if fits, err := c.row(ctx, a, &d.Rows[i]); err != nil || !fits {
			if err != nil {
				return nil, err
			}
			break
		}
		shown++
	}
	if from+shown < len(d.Rows) {
		a.next = given(map[string]any{"thread": in.Thread, "from": from + shown, "limit": limit})
	}
	a.head = fmt.Sprintf("Conversation %s: rows %d to %d of %d, where histories begin, fork, end or have a name. * is the active branch.",
		refs.Short(t.ID()), from+1, from+shown, len(d.Rows))
	return a, nil
}

// row adds a row of a graph.
func (c *call) row(ctx context.Context, a *answer, r *graph.Row) (fits bool, err error) {
	ref := r.Ref()
	entries, err := c.o.Store.Span(ctx, ref)
	if err != nil {
		return false, err
	}
	e := entries[0]
	e.Position = r.Position()
	text, err := c.line(ctx, e)
	if err != nil {
		return false, err
	}
	parent, err := records.ParentOf(ctx, c.o.Store, e)
	if err != nil {
		return false, err
	}
	names := ""
	for i, l := range r.Labels {
		if i == 6 {
			names += fmt.Sprintf(" and %d more", len(r.Labels)-i)
			break
		}
		names += " [" + cut(plain.Line(l.String()), 80)
		if l.Active {
			names += " *"
		}
		names += "]"
	}
	before := ""
	if r.Folded > 0 {
		before = fmt.Sprintf("%*s┊ %s\n", 2*r.Lane, "", amount.Plural(r.Folded, "message"))
	}
	if r.Hidden > 0 {
		names += fmt.Sprintf(" (and %s more)", amount.Plural(r.Hidden, "fork"))
	}
	fits, err = a.add(&records.Node{
		ID: records.EntryID(e), Parent: records.SpanID(parent), Position: e.Position, Role: e.Role, ContentID: e.Content.String(),
		Preview: text, SpanSet: records.ID(e.Set), CreatedAt: e.CreatedAt.UTC(),
	})
	if err != nil || !fits {
		return false, err
	}
	return a.quote("%s%*s● %d %s  %s%s\n", before, 2*r.Lane, "", e.Position, refs.ShortSpan(ref), text, names), nil
}

type whereInput struct {
	Thread  string `json:"thread,omitempty" jsonschema:"the conversation that the position is in (default the one that changed last)"`
	Content string `json:"content" jsonschema:"a message by its id or position, or the id of a content"`
	From    int    `json:"from,omitempty" jsonschema:"continue with this use"`
}

// where lists the uses of a content.
func (c *call) where(ctx context.Context, in *whereInput) (*answer, error) {
	if err := checked(in.Thread, in.Content); err != nil {
		return nil, err
	}
	t, err := c.thread(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	names := c.names(t)
	id, err := names.Content(ctx, in.Content)
	if err != nil {
		return nil, err
	}
	a := newAnswer(0)
	reached, err := c.addUses(ctx, a, id, in.From, names.Sees)
	if err != nil {
		return nil, err
	}
	if reached == 0 {
		return nil, unknownContent(id)
	}
	if a.full {
		a.next = given(map[string]any{"thread": in.Thread, "content": in.Content, "from": reached - 1})
	}
	a.head = fmt.Sprintf("%s of content %s.", amount.Plural(len(a.records), "use"), id.Short())
	return a, nil
}

// addUses adds the uses of a content that sees allows, after the first ones, as far as they fit. reached is the number of these uses,
// with the first one that does not fit.
func (c *call) addUses(ctx context.Context, a *answer, id content.ID, after int, sees func(context.Context, lineage.SpanRef) (bool, error)) (reached int, err error) {
	for e, err := range c.o.Store.Where(ctx, id) {
		if errors.Is(err, lineage.ErrNotFound) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		allowed, err := sees(ctx, e.Span)
		if err != nil {
			return 0, err
		}
		if !allowed {
			continue
		}
		if reached++; reached <= after {
			continue
		}
		if fits, err := c.use(ctx, a, e); err != nil || !fits {
			return reached, err
		}
		if len(a.records) == maxRows {
			a.full = true
			return reached + 1, nil
		}
	}
	return reached, nil
}

func unknownContent(id content.ID) error {
	return &refs.UnknownError{Kind: "content", Text: id.String()}
}

// use adds a use of a content.
func (c *call) use(ctx context.Context, a *answer, e *lineage.Entry) (fits bool, err error) {
	r, err := records.OfMessage(ctx, c.o.Store, e, minMessage)
	if err != nil {
		return false, err
	}
	r.Text, r.Data = cut(r.Text, minMessage), nil
	c.hide(r)
	if fits, err = a.add(r); err != nil || !fits {
		return false, err
	}
	line, err := c.line(ctx, e)
	if err != nil {
		return false, err
	}
	return a.quote("%s  message %d  %s  %s\n", refs.ShortAddress(r.ID), e.Position, stamp(e.CreatedAt), line), nil
}

type diffInput struct {
	Thread string `json:"thread,omitempty" jsonschema:"the conversation that the positions are in (default the one that changed last)"`
	A      string `json:"a" jsonschema:"a position"`
	B      string `json:"b,omitempty" jsonschema:"another one (default the active branch)"`
	Budget int    `json:"budget,omitempty" jsonschema:"how many tokens the answer may have, about (default 6000, at most 40000)"`
}

func (c *call) diff(ctx context.Context, in *diffInput) (*answer, error) {
	if err := checked(in.Thread, in.A, in.B); err != nil {
		return nil, err
	}
	from, err := c.find(ctx, in.Thread, in.A)
	if err != nil {
		return nil, err
	}
	to, err := c.find(ctx, in.Thread, in.B)
	if err != nil {
		return nil, err
	}
	a := newAnswer(in.Budget)
	return a, c.compare(ctx, a, from, to)
}

// compare adds the differences of two histories.
func (c *call) compare(ctx context.Context, a *answer, from, to *position) error {
	d, err := difference.Of(ctx, c.o.Store, from.Span, to.Span, maxCompared)
	if err != nil {
		return err
	}
	summary := &records.DiffSummary{Common: d.Common, OnlyA: d.OnlyA(), OnlyB: d.OnlyB(), Same: d.Same}
	if _, err := a.add(summary); err != nil {
		return err
	}
	for _, side := range []struct {
		at         *position
		only       []bool
		name, mark string
	}{{from, d.A, "a", "-"}, {to, d.B, "b", "+"}} {
		if err := c.addOnly(ctx, a, side.at, d.Common, side.only, side.name, side.mark); err != nil {
			return err
		}
	}
	a.head = fmt.Sprintf("%s in common, then %d only in a (-) and %d only in b (+); %d after the fork say the same.", amount.Plural(summary.Common, "message"), summary.OnlyA, summary.OnlyB, summary.Same)
	if d.Cut {
		a.note("Only the first %d messages of each after the fork were compared.", maxCompared)
	}
	if a.full {
		a.note("Not all differences are shown: read each history from position %d on with the tool read, or ask with a larger budget.", d.Common+1)
	}
	return nil
}

// addOnly adds the messages that one history does not have in common with the other, as far as they fit. only has, for each message
// after the common ones, whether it is one of these.
func (c *call) addOnly(ctx context.Context, a *answer, at *position, common uint64, only []bool, name, mark string) error {
	if !slices.Contains(only, true) {
		return nil
	}
	i := 0
	for e, err := range c.o.Store.History(ctx, at.Span, lineage.Window{From: common + 1}) {
		if err != nil || i == len(only) {
			return err
		}
		if only[i] {
			if fits, err := c.difference(ctx, a, e, name, mark); err != nil || !fits {
				return err
			}
		}
		i++
	}
	return nil
}

// maxCompared limits the messages of each history that are compared.
const maxCompared = 2000

func (c *call) difference(ctx context.Context, a *answer, e *lineage.Entry, side, mark string) (fits bool, err error) {
	r, err := records.OfMessage(ctx, c.o.Store, e, minMessage)
	if err != nil {
		return false, err
	}
	if len(r.Text) > minMessage {
		r.Text, r.Truncated, r.Data = cut(r.Text, minMessage), true, nil
	}
	c.hide(r)
	if fits, err = a.add(&records.Diff{Side: side, Message: r}); err != nil || !fits {
		return false, err
	}
	line, err := c.line(ctx, e)
	if err != nil {
		return false, err
	}
	return a.quote("%s %d %s  %s\n", mark, e.Position, refs.ShortAddress(r.ID), line), nil
}
