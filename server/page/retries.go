package page

import (
	"cmp"
	"context"
	"errors"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/structure"
)

// addRetries numbers the messages that are one of several after the same message: repeated answers, edits, and starts
// of branches.
func (p *Page) addRetries(ctx context.Context, v *conversationView) error {
	in := cmp.Or(v.Context, v.Info.Active.String()) // the history of a message has no context; any context of the thread knows what follows
	id, err := structure.ParseID[lineage.ContextID](in)
	if err != nil || id.IsZero() || len(v.Messages) == 0 {
		return nil
	}
	c, err := p.o.Store.Context(ctx, id)
	if errors.Is(err, lineage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var ends map[lineage.SpanRef]string
	var before lineage.SpanRef // the previous message, and its position
	done := uint64(0)
	for _, m := range v.Messages {
		if m.Position == done {
			continue // another part of the same message
		}
		if m.Position > done+1 { // results are displayed with their calls
			if before, err = p.o.Store.At(ctx, v.Tip, m.Position-1); err != nil {
				return err
			}
		}
		done = m.Position
		span, err := p.o.Store.At(ctx, v.Tip, m.Position)
		if err != nil {
			return err
		}
		all, err := c.Continuations(ctx, before, maxRetries)
		if before = span; err != nil {
			return err
		}
		if len(all) < 2 {
			continue
		}
		if ends == nil {
			if ends, err = p.ends(ctx, &v.Info); err != nil {
				return err
			}
		}
		if m.Retries, err = p.retries(ctx, v.ID, m.Position, span, all, ends); err != nil {
			return err
		}
		m.Continues = m.Continues && m.Retries == nil // its head is displayed
	}
	return nil
}

// ends maps the tips of the contexts of a thread to their names in addresses.
func (p *Page) ends(ctx context.Context, thread *lineage.ThreadInfo) (map[lineage.SpanRef]string, error) {
	ends := make(map[lineage.SpanRef]string)
	for c, err := range p.o.Store.View().Contexts(ctx, thread.ID, lineage.ContextID{}) {
		if err != nil {
			return nil, err
		}
		if c.ID == thread.Active {
			ends[c.Tip] = ""
		} else if _, known := ends[c.Tip]; !known {
			ends[c.Tip] = c.ID.String()
		}
	}
	return ends, nil
}

// retries returns the alternatives to a message.
func (p *Page) retries(
	ctx context.Context, thread string, position uint64, current lineage.SpanRef, all []lineage.SpanRef, ends map[lineage.SpanRef]string,
) (*render.Retries, error) {
	r := &render.Retries{Of: len(all)}
	href := func(span lineage.SpanRef) (string, error) {
		last, err := p.o.Store.View().Last(ctx, span.Run)
		if errors.Is(err, lineage.ErrNotFound) {
			last, err = span, nil // collected meanwhile
		}
		in, known := ends[last]
		if !known {
			in = last.String()
		}
		return (&subject{ID: thread, In: in}).Href(position), err
	}
	for i, span := range all {
		if span != current {
			continue
		}
		r.Number = i + 1
		var err error
		if i > 0 {
			r.Before, err = href(all[i-1])
		}
		if err == nil && i+1 < len(all) {
			r.After, err = href(all[i+1])
		}
		return r, err
	}
	return nil, nil
}
