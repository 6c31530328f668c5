package page

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// messages returns the rendered messages of a window.
func (p *Page) messages(ctx context.Context, subject *subject, w lineage.Window) ([]*render.Message, error) {
	items, err := p.items(ctx, subject, w, 0)
	return p.rendered(ctx, subject, items), err
}

// items returns the transcript of a window. Calls are matched with results, and results with calls, up to the given
// number of messages outside of the window.
func (p *Page) items(ctx context.Context, subject *subject, w lineage.Window, outside uint64) (items []*transcript.Item, err error) {
	if w.From > w.To || subject.Tip.IsZero() {
		return nil, nil
	}
	wide := lineage.Window{From: max(w.From, outside+1) - outside, To: w.To + outside}
	for i, err := range transcript.All(p.transcribed(ctx, subject.Tip, wide), transcript.Options{MaxText: most}) {
		if err != nil {
			return nil, err
		}
		if i.From != nil && w.From <= i.From.Position && i.From.Position <= w.To {
			items = append(items, i)
		}
	}
	return items, nil
}

func (p *Page) rendered(ctx context.Context, subject *subject, items []*transcript.Item) []*render.Message {
	all := render.Messages(ctx, items, render.Options{Image: p.imageOf(subject.ID), Prefix: subject.prefix, Highlighting: highlighting})
	for _, m := range all {
		m.Prompt = words(m.Prompt)
	}
	return all
}

// transcribed yields the entries of a window. If they exceed the number of bytes that are read for a window, the rest
// have only the starts of their texts.
func (p *Page) transcribed(ctx context.Context, tip lineage.SpanRef, w lineage.Window) iter.Seq2[*transcript.Message, error] {
	return func(yield func(*transcript.Message, error) bool) {
		left := int64(maxRead)
		for e, err := range p.o.Store.History(ctx, tip, w) {
			if err != nil {
				yield(nil, err)
				return
			}
			limit := min(left, maxBody)
			if e.Size <= limit {
				left -= e.Size
			}
			if m, err := p.o.Store.Transcribe(ctx, e, max(limit, preview)); !yield(m, err) || err != nil {
				return
			}
		}
	}
}

const (
	// window is the number of messages on a page. most is the number of bytes of a text that are displayed.
	window = 100
	most   = 32 << 10
	// maxRead is the number of bytes of bodies that are read for a window, and maxBody that of a single body.
	maxRead = 32 << 20
	maxBody = 8 << 20
	// around is the number of messages before and after a window in which matching calls and results are searched
	// for.
	around = 32
	// beside is the number of branches and subagents listed beside a conversation.
	beside = 60
)

// highlighting is the time limit for highlighting the code in a window. Highlighted code is cached. Tests change it.
var highlighting = 2 * time.Second
