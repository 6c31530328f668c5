package mcp

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/transcript"
)

const (
	// minMessage and maxMessage limit how much of a message is shown, in bytes.
	minMessage = 1 << 10
	maxMessage = 16 << 10
	// maxWhole limits a message that is read in full, in bytes.
	maxWhole = 64 << 20
)

type readInput struct {
	Thread string  `json:"thread,omitempty" jsonschema:"the conversation: its id or title (default the one that changed last)"`
	At     string  `json:"at,omitempty" jsonschema:"the position whose history is read: a branch, a checkpoint, the id of a message or context, with steps such as main~2 (default the active branch)"`
	From   uint64  `json:"from,omitempty" jsonschema:"the first position to show, counted from 1 (default as many of the last as fit)"`
	To     uint64  `json:"to,omitempty" jsonschema:"the last position to show"`
	Last   uint64  `json:"last,omitempty" jsonschema:"only so many of the last messages"`
	Budget int     `json:"budget,omitempty" jsonschema:"how many tokens the answer may have, about (default 6000, at most 40000)"`
	Offset *uint64 `json:"offset,omitempty" jsonschema:"show the one message at the position in full, from this byte of its text on"`
}

func (c *call) read(ctx context.Context, in *readInput) (*answer, error) {
	if err := checked(in.Thread, in.At); err != nil {
		return nil, err
	}
	if in.From > 0 && in.To > 0 && in.From > in.To || in.Last > 0 && in.From > 0 {
		return nil, fmt.Errorf("from, to and last: %w: from is not after to, and last is without from", lineage.ErrInvalid)
	}
	at, err := c.find(ctx, in.Thread, in.At)
	if err != nil {
		return nil, err
	}
	if in.Offset != nil {
		return c.readWhole(ctx, at, in)
	}
	a := newAnswer(in.Budget)
	w, length, err := c.window(ctx, at, in, a)
	if err != nil {
		return nil, err
	}
	next, err := c.show(ctx, a, at, w)
	if err != nil {
		return nil, err
	}
	title, err := c.headOf(ctx, at)
	if err != nil {
		return nil, err
	}
	switch {
	case length == 0:
		a.head = title + " It has no messages."
		return a, nil
	case next > 0:
		a.next = in.with(map[string]any{"from": next})
		if in.To > 0 {
			a.next["to"] = in.To
		}
	default:
		next = w.To + 1
	}
	a.head = fmt.Sprintf("%s Messages %d to %d of %d.", title, w.From, next-1, length)
	if w.From > 1 && in.From == 0 {
		a.note("Earlier messages: call read with from and to, up to %d.", w.From-1)
	}
	return a, nil
}

// with returns arguments that read the same history.
func (in *readInput) with(more map[string]any) map[string]any {
	more["thread"], more["at"] = in.Thread, in.At
	if in.Budget > 0 {
		more["budget"] = in.Budget
	}
	return given(more)
}

// headOf returns a description of the history that is shown.
func (c *call) headOf(ctx context.Context, at *position) (string, error) {
	info, err := at.home.Info(ctx)
	if err != nil {
		return "", err
	}
	subject := "conversation " + refs.Short(info.ID)
	switch {
	case at.Moved || at.Branch == "" && at.Checkpoint == "":
	case at.Branch != "":
		subject += fmt.Sprintf(", branch %q", plain.Line(at.Branch))
	default:
		subject += fmt.Sprintf(", checkpoint %q", plain.Line(at.Checkpoint))
	}
	return strings.ToUpper(subject[:1]) + subject[1:] + ".", nil
}

// messageLimit returns how many bytes of each message an answer shows.
func (a *answer) messageLimit() int { return min(max(a.limit/4, minMessage), maxMessage) }

// window returns the positions to show, and the length of the history. The positions are those requested, or the last
// ones that fit.
func (c *call) window(ctx context.Context, at *position, in *readInput, a *answer) (w lineage.Window, length uint64, err error) {
	if at.Span.IsZero() {
		return w, 0, nil
	}
	if length, err = c.o.Store.Position(ctx, at.Span); err != nil {
		return w, 0, err
	}
	w = lineage.Window{From: in.From, To: length}
	if in.To > 0 {
		w.To = min(in.To, length)
	}
	if w.From > w.To {
		return w, 0, fmt.Errorf("from %d: %w: the history has %s", w.From, lineage.ErrNotFound, amount.Plural(w.To, "message"))
	}
	if w.From > 0 {
		return w, length, nil
	}
	first := uint64(1)
	if in.Last > 0 && in.Last < w.To {
		first = w.To - in.Last + 1
	}
	// From the end towards the start, in steps.
	const step = 32
	w.From = w.To + 1
	for left := a.limit; w.From > first; {
		part := lineage.Window{From: max(first, w.From-min(step, w.From-1)), To: w.From - 1}
		var sizes []int
		for e, err := range c.o.Store.History(ctx, at.Span, part) {
			if err != nil {
				return w, 0, err
			}
			size := min(int(min(e.Size, maxMessage)), a.messageLimit()) + 600 // including the rest of its record
			if e.Index > 0 {
				sizes[len(sizes)-1] += size
				continue
			}
			sizes = append(sizes, size)
		}
		for i := len(sizes) - 1; i >= 0; i-- {
			if left -= sizes[i]; left < 0 && w.From <= w.To {
				return w, length, nil
			}
			w.From--
		}
		if len(sizes) == 0 {
			break
		}
	}
	return w, length, nil
}

// show adds a window of a history. It returns the first position that does not fit, 0 if all fit.
func (c *call) show(ctx context.Context, a *answer, at *position, w lineage.Window) (next uint64, err error) {
	if at.Span.IsZero() {
		return 0, nil
	}
	limit := a.messageLimit()
	pairs := transcript.NewPairer(transcript.Options{MaxText: limit})
	p := printer{answer: a}
	shown := uint64(0)
	for e, err := range c.o.Store.History(ctx, at.Span, w) {
		if err != nil {
			return 0, err
		}
		r, err := records.OfMessage(ctx, c.o.Store, e, int64(limit))
		if err != nil {
			return 0, err
		}
		if len(r.Text) > limit {
			r.Text, r.Truncated = cut(r.Text, limit), true
		}
		c.hide(r)
		if r.Truncated {
			r.Data = nil
		}
		// The texts of a message are shown together, once.
		if fits, err := a.add(r); err != nil || !fits {
			next = e.Position
			if err == nil && next == shown {
				next++
			}
			p.print(pairs.Flush())
			return next, err
		}
		message, err := c.o.Store.Transcribe(ctx, e, int64(limit))
		if err != nil {
			return 0, err
		}
		shown = e.Position
		pairs.Add(message)
		p.print(pairs.Ready())
	}
	p.print(pairs.Flush())
	return 0, nil
}

// hide removes from a record what may be outside of the scope: the content that the message was derived from.
func (c *call) hide(r *records.Message) {
	if !c.scope.All() && r.Origin != nil {
		r.Origin.DerivedFrom = ""
	}
}

// readWhole shows a part of one message.
func (c *call) readWhole(ctx context.Context, at *position, in *readInput) (*answer, error) {
	e, err := at.names.Entry(ctx, at.Ref)
	if err != nil {
		return nil, err
	}
	if e.Size > maxWhole {
		return nil, fmt.Errorf("message %s: %d bytes: %w", refs.ShortSpan(e.Span), e.Size, lineage.ErrTooLarge)
	}
	if !records.IsText(e.Type) {
		return nil, fmt.Errorf("message %s: %s is not text: %w", refs.ShortSpan(e.Span), plain.Line(e.Type), lineage.ErrInvalid)
	}
	text, err := c.o.Store.Text(ctx, e)
	if err != nil {
		return nil, err
	}
	start := *in.Offset
	if start > uint64(len(text)) {
		return nil, fmt.Errorf("offset %d: %w: the text has %d bytes", start, lineage.ErrInvalid, len(text))
	}
	for start > 0 && start < uint64(len(text)) && !utf8.RuneStart(text[start]) {
		start--
	}
	a := newAnswer(in.Budget)
	part := cut(text[start:], a.limit/2) // hidden characters need more bytes
	end := start + uint64(len(part))
	a.quote("%s\n", part)
	r, err := records.OfMessage(ctx, c.o.Store, e, 0)
	if err != nil {
		return nil, err
	}
	c.hide(r)
	r.Text, r.Data, r.Metadata, r.Truncated = part, nil, nil, len(part) < len(text)
	whole, err := records.Encode(r)
	if err != nil {
		return nil, err
	}
	a.records = append(a.records, whole)
	a.head = fmt.Sprintf("Message %s, bytes %d to %d of %d.", refs.ShortSpan(e.Span), start, end, len(text))
	if end < uint64(len(text)) {
		a.next = in.with(map[string]any{"offset": end})
	}
	return a, nil
}

// printer adds the items of a transcript to an answer.
type printer struct {
	*answer
	last *transcript.Message
}

// print adds items.
func (p *printer) print(items []*transcript.Item) {
	for _, i := range items {
		if i.Kind == transcript.Mark {
			continue
		}
		if i.From != nil && i.From != p.last {
			speaker, _ := transcript.Line(i.From)
			p.quote("%s%d  %s  %s  %s\n", blank(p.last != nil), i.From.Position, plain.Line(speaker), refs.ShortAddress(i.From.ID), stamp(i.From.Created))
			p.last = i.From
		}
		p.item(i)
	}
}

func blank(yes bool) string {
	if yes {
		return "\n"
	}
	return ""
}

func (p *printer) item(i *transcript.Item) {
	switch i.Kind {
	case transcript.Call:
		p.quote("  → %s %s\n", plain.Line(i.Call.Tool), plain.Line(i.Call.Title))
		if i.Call.Text != i.Call.Title {
			p.block(i.Call.Text, i.Call.Left)
		}
		p.block(i.Call.Diff, i.Call.DiffLeft)
		if string(i.Call.Rest) != i.Call.Title {
			p.block(string(i.Call.Rest), 0)
		}
		for _, r := range i.Call.Results {
			p.result(r)
		}
	case transcript.Result:
		p.result(i.Result)
	case transcript.File, transcript.Note:
		p.quote("  %s\n", plain.Line(i.Line()))
	case transcript.Thinking:
		p.block("(thinking) "+i.Text, i.Left)
	case transcript.Reminder:
		p.block("(reminder) "+i.Text, i.Left)
	default:
		p.block(i.Text, i.Left)
	}
}

func (p *printer) result(r *transcript.ToolResult) {
	head := "  ←"
	if r.Failed {
		head = "  ✗"
	}
	if r.Exit != nil {
		head += fmt.Sprintf(" exit %d", *r.Exit)
	}
	p.quote("%s\n", head)
	p.block(r.Text, r.Left)
	for _, f := range r.Files {
		p.quote("  [%s]\n", plain.Line(f.String()))
	}
}

// block adds a text of several lines, indented.
func (p *printer) block(text string, left int) {
	if strings.TrimSpace(text) == "" && left == 0 {
		return
	}
	text = "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
	// Text that does not fit is cut. The message can be read in full.
	if room := p.room() - 100; len(text) > room && room > 0 {
		left += len(text) - room
		text = cut(text, room)
	}
	if !p.quote("%s\n", text) {
		return
	}
	if left > 0 {
		p.quote("  … %d bytes more: read with at and offset 0\n", left)
	}
}
