package conversation

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/lineage"
)

// AddMessage adds a message to the current branch.
func (c *Conversation) AddMessage(ctx context.Context, m Message) error {
	item, err := m.item()
	if err != nil {
		return err
	}
	changing := c.changing()
	changing.RLock()
	defer changing.RUnlock()
	var deleted lineage.ContextID // was current when it was tried
	for {
		current, err := c.thread.Active(ctx)
		if err != nil {
			return err
		}
		_, err = current.Extend(ctx, item)
		if !errors.Is(err, lineage.ErrNotFound) || current.ID() == deleted {
			return err
		}
		deleted = current.ID()
	}
}

// SetMessages replaces the messages of the current branch. The common beginning of the two lists stays
// shared. Unless the list only extends the branch, the old messages are in the reflog of the branch's
// context, and Undo restores them.
func (c *Conversation) SetMessages(ctx context.Context, messages []Message) error {
	return c.inTransaction(ctx, func(in *Conversation) error {
		b, current, err := in.findContext(ctx, "")
		if err != nil {
			return err
		}
		after, kept, err := in.commonPrefix(ctx, b.state.Tip, messages)
		if err != nil {
			return err
		}
		items := make([]lineage.Item, len(messages)-kept)
		for i, m := range messages[kept:] {
			if items[i], err = m.item(); err != nil {
				return err
			}
		}
		if err := current.MoveTo(ctx, after, "set messages"); err != nil {
			return err
		}
		_, err = current.Extend(ctx, items...)
		return err
	})
}

// commonPrefix returns the length of the common beginning of a history and a list, in messages of whole
// spans, and its last span.
func (c *Conversation) commonPrefix(ctx context.Context, tip lineage.SpanRef, messages []Message) (after lineage.SpanRef, kept int, err error) {
	var span lineage.SpanRef
	alike := 0
	for e, err := range c.store.History(ctx, tip, lineage.Window{}) {
		if err != nil {
			return after, kept, err
		}
		if e.Index == 0 {
			after, kept, span = span, alike, e.Span
		}
		if e.Kind != lineage.Message {
			continue
		}
		m, err := c.messageOf(ctx, e)
		if err != nil || alike == len(messages) || !m.Equal(messages[alike]) {
			return after, kept, err
		}
		alike++
	}
	return span, alike, nil
}

// Messages returns the messages of the current branch.
func (c *Conversation) Messages(ctx context.Context) ([]Message, error) { return c.MessagesOf(ctx, "") }

// MessagesOf returns the messages of the branch with an id, or of the current branch if the id is empty.
func (c *Conversation) MessagesOf(ctx context.Context, id string) ([]Message, error) {
	b, err := c.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.messages(ctx, b.state.Tip)
}

// messages returns the messages of a history.
func (c *Conversation) messages(ctx context.Context, tip lineage.SpanRef) ([]Message, error) {
	messages := []Message{}
	for e, err := range c.store.History(ctx, tip, lineage.Window{}) {
		if err != nil {
			return nil, err
		}
		if e.Kind != lineage.Message {
			continue
		}
		m, err := c.messageOf(ctx, e)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}
