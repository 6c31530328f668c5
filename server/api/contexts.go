package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

func (a *API) listContexts(ctx context.Context, c *call, in *threadList) (*list[*records.Context], error) {
	t, err := c.thread(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	var after lineage.ContextID
	if in.After != "" {
		if after, err = structure.ParseID[lineage.ContextID](in.After); err != nil {
			return nil, fmt.Errorf("after: %w: must be the next value of a page", lineage.ErrInvalid)
		}
	}
	out := &list[*records.Context]{}
	for found, err := range a.o.Store.View().Contexts(ctx, t.ID(), after) {
		if err != nil {
			return nil, err
		}
		if len(out.Items) == in.size() {
			out.Next = out.Items[len(out.Items)-1].ID
			break
		}
		r, err := a.contextRecord(ctx, found.ID)
		if errors.Is(err, lineage.ErrNotFound) {
			continue // deleted in the meantime
		}
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, r)
	}
	return out, nil
}

func (a *API) contextRecord(ctx context.Context, id lineage.ContextID) (*records.Context, error) {
	c, err := a.o.Store.Context(ctx, id)
	if err != nil {
		return nil, err
	}
	return records.OfContext(ctx, a.o.Store, c)
}

func (a *API) getContext(ctx context.Context, c *call, in *of) (*records.Context, error) {
	found, err := c.context(ctx, *in)
	if err != nil {
		return nil, err
	}
	r, err := records.OfContext(ctx, a.o.Store, found.Context)
	if err == nil {
		c.tellTip(r.Tip)
	}
	return r, err
}

// emptyTip is the tip of an empty history in headers.
const emptyTip = "empty"

// tellTip sets the header with the tip of a history, for If-Match.
func (c *call) tellTip(tip *string) {
	c.tag = emptyTip
	if tip != nil {
		c.tag = *tip
	}
	c.w.Header().Set("Lineage-Tip", c.tag)
}

type fork struct {
	ofThread
	From     string   `json:"from,omitempty" doc:"the position it continues from; default the tip of the active branch"`
	Empty    bool     `json:"empty,omitempty" doc:"start with an empty history"`
	Into     string   `json:"into,omitempty" doc:"the thread that it belongs to, if another"`
	Subagent bool     `json:"subagent,omitempty" doc:"it is for a subagent, which reports with return"`
	Last     *uint64  `json:"last,omitempty" doc:"it sees only the last so many messages"`
	Roles    []string `json:"roles,omitempty" doc:"it sees only messages of these roles"`
	settings
}

func (o *fork) do(ctx context.Context, w *within) (made, error) {
	t, err := w.thread(ctx, o.Thread)
	if err != nil {
		return made{}, err
	}
	from, at, err := w.start(ctx, t, o.From)
	if err != nil {
		return made{}, err
	}
	options := lineage.ForkOptions{
		At: at, Empty: o.Empty || at.IsZero(), Thread: t.ID(), Overrides: o.overrides(), Metadata: orNil(o.Metadata),
	}
	if options.Empty {
		options.At = lineage.SpanRef{}
	}
	if o.Into != "" {
		into, err := w.thread(ctx, o.Into)
		if err != nil {
			return made{}, err
		}
		options.Thread = into.ID()
	}
	if o.Subagent && options.Metadata == nil {
		options.Metadata = []byte(lineage.SubagentMark)
	}
	if o.Last != nil || len(o.Roles) > 0 {
		options.Sees = &lineage.Filter{Roles: o.Roles}
		if o.Last != nil {
			options.Sees.Window.Last = *o.Last
			if *o.Last == 0 {
				options.Sees.Keep = func(*lineage.Entry) bool { return false }
			}
		}
	}
	c, err := from.Fork(ctx, options)
	if err != nil {
		return made{}, err
	}
	return made{Context: c.ID().String()}, nil
}

type createContext struct {
	ID string `json:"id,omitempty" doc:"an id of your choice, unique in the store"`
	settings
}

func (o *createContext) do(ctx context.Context, w *within) (made, error) {
	if !w.caller.Scope.All() {
		return made{}, errWhole
	}
	c, err := w.store.NewContext(ctx, lineage.ContextOptions{SourceID: o.ID, Overrides: o.overrides(), Metadata: orNil(o.Metadata)})
	if err != nil {
		return made{}, err
	}
	return made{Context: c.ID().String()}, nil
}

type updateContext struct {
	of
	settings
}

func (o *updateContext) do(ctx context.Context, w *within) (made, error) {
	found, err := w.context(ctx, o.of)
	if err != nil {
		return made{}, err
	}
	err = found.Context.Update(ctx, func(info *lineage.ContextInfo) error {
		if o.SystemPrompt != nil {
			info.Overrides.SystemPrompt = orUnset(o.SystemPrompt)
		}
		if o.Model != nil {
			info.Overrides.Model = orUnset(o.Model)
		}
		if o.Overrides != nil {
			info.Overrides.JSON = orNil(o.Overrides)
		}
		if o.Metadata != nil {
			info.Metadata = orNil(o.Metadata)
		}
		return nil
	})
	return made{Context: found.Context.ID().String()}, err
}

// orUnset returns a setting. It returns nil for an empty one, which is then inherited again.
func orUnset(text *string) *string {
	if *text == "" {
		return nil
	}
	return text
}

type deleteContext struct{ of }

func (o *deleteContext) do(ctx context.Context, w *within) (made, error) {
	found, err := w.context(ctx, o.of)
	if err != nil {
		return made{}, err
	}
	return made{}, found.Context.Delete(ctx)
}

// ifTip states the tip that a context must have for a change.
type ifTip struct {
	IfTip *string `json:"if_tip,omitempty" header:"If-Match" doc:"only if this is the tip of the context; empty for an empty history"`
}

// tip returns the expected tip, and whether one is expected.
func (i *ifTip) tip() (tip lineage.SpanRef, expected bool, err error) {
	if i.IfTip == nil {
		return tip, false, nil
	}
	text := strings.TrimSpace(*i.IfTip)
	if text == "*" {
		return tip, false, nil
	}
	text = strings.Trim(strings.TrimPrefix(text, "W/"), `"`)
	if text == "" { // as in the answer tip-moved
		return tip, true, nil
	}
	text, _, _ = strings.Cut(text, ".") // the hash that follows in an ETag
	if text == emptyTip {
		return tip, true, nil
	}
	if tip, err = structure.ParseSpanRef(text); err != nil {
		err = fmt.Errorf("tip %.100q: %w: must be the id of a message, or %s", *i.IfTip, lineage.ErrInvalid, emptyTip)
	}
	return tip, true, err
}

// check returns a *TipError if the tip is not the expected one.
func (i *ifTip) check(c *lineage.Context, actual lineage.SpanRef) error {
	tip, expected, err := i.tip()
	if err == nil && expected && tip != actual {
		err = &lineage.TipError{Context: c.ID(), Expected: tip, Actual: actual}
	}
	return err
}

type move struct {
	of
	To     string `json:"to" doc:"the position; empty for the one before the first message"`
	Reason string `json:"reason,omitempty" doc:"is kept in the list of moves; default move"`
	ifTip
}

func (o *move) do(ctx context.Context, w *within) (made, error) {
	found, err := w.context(ctx, o.of)
	if err != nil {
		return made{}, err
	}
	if err := o.check(found.Context, found.Span); err != nil {
		return made{}, err
	}
	if o.To == "" {
		return made{}, fmt.Errorf("to: %w: must be a position", lineage.ErrInvalid)
	}
	var to lineage.SpanRef
	if o.To != emptyTip {
		at, err := w.position(ctx, found, o.To)
		if err != nil {
			return made{}, err
		}
		to = at.Span
	}
	if err := found.Context.MoveTo(ctx, to, cmp.Or(o.Reason, "move")); err != nil {
		return made{}, err
	}
	return w.moved(ctx, found.Context, found.Span)
}

// moved returns the result of a move from a tip.
func (w *within) moved(ctx context.Context, c *lineage.Context, from lineage.SpanRef) (made, error) {
	to, err := c.Tip(ctx)
	if err != nil {
		return made{}, err
	}
	length, err := w.store.Position(ctx, to)
	return made{Moved: &records.Moved{Context: c.ID().String(), From: records.SpanID(from), To: records.SpanID(to), Length: length}}, err
}

type undo struct {
	of
	ifTip
}

func (o *undo) do(ctx context.Context, w *within) (made, error) {
	found, err := w.context(ctx, o.of)
	if err != nil {
		return made{}, err
	}
	if err := o.check(found.Context, found.Span); err != nil {
		return made{}, err
	}
	if err := found.Context.Undo(ctx); err != nil {
		return made{}, err
	}
	return w.moved(ctx, found.Context, found.Span)
}

func (a *API) listMoves(ctx context.Context, c *call, in *of) (*list[*records.Move], error) {
	found, err := c.context(ctx, *in)
	if err != nil {
		return nil, err
	}
	out := &list[*records.Move]{}
	for m, err := range found.Context.Reflog(ctx) {
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, &records.Move{
			Context: found.Context.ID().String(), From: records.SpanID(m.From), To: records.SpanID(m.To), Reason: m.Reason, At: m.At.UTC(),
		})
	}
	n := len(out.Items)
	for i := range n / 2 {
		out.Items[i], out.Items[n-1-i] = out.Items[n-1-i], out.Items[i]
	}
	for i, m := range out.Items {
		m.Back = i + 1
	}
	return out, nil
}
