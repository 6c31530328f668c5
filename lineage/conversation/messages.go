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
	c.changing.RLock()
	defer c.changing.RUnlock()
	return c.onCurrent(ctx, func(current *lineage.Context) error {
		_, err := current.Extend(ctx, item)
		return err
	})
}

// SetMessages makes these the messages of the current branch. The messages that the
// two lists begin with alike stay shared with other branches. What the branch said
// before is in the reflog of its context, so that Undo there takes it back, unless the list only continues it.
func (c *Conversation) SetMessages(ctx context.Context, messages []Message) error {
	c.changing.RLock()
	defer c.changing.RUnlock()
	return c.inTransaction(ctx, func(in *Conversation) error {
		current, err := in.thread.Active(ctx)
		if err != nil {
			return err
		}
		tip, err := current.Tip(ctx)
		if err != nil {
			return err
		}
		after, kept, err := in.commonPrefix(ctx, tip, messages)
		if err != nil {
			return err
		}
		if after != tip {
			if err := current.MoveTo(ctx, after, "set messages"); err != nil {
				return err
			}
		}
		items := make([]lineage.Item, len(messages)-kept)
		for i, m := range messages[kept:] {
			if items[i], err = m.item(); err != nil {
				return err
			}
		}
		_, err = current.Extend(ctx, items...)
		return err
	})
}

// commonPrefix returns how many messages a history and a list begin with alike, and
// the last span of these. A span counts as a whole or not at all.
func (c *Conversation) commonPrefix(ctx context.Context, tip lineage.SpanRef, messages []Message) (after lineage.SpanRef, kept int, err error) {
	var span lineage.SpanRef
	alike := 0
	for e, err := range c.store.History(ctx, tip, lineage.Window{}) {
		if err != nil {
			return lineage.SpanRef{}, 0, err
		}
		if e.Index == 0 {
			after, kept = span, alike
			span = e.Span
		}
		if e.Kind != lineage.Message {
			continue
		}
		m, err := c.messageOf(ctx, e)
		if err != nil {
			return lineage.SpanRef{}, 0, err
		}
		if alike == len(messages) || !m.Equal(messages[alike]) {
			return after, kept, nil
		}
		alike++
	}
	return span, alike, nil
}

// Messages returns the messages of the current branch.
func (c *Conversation) Messages(ctx context.Context) ([]Message, error) {
	var messages []Message
	err := c.onCurrent(ctx, func(current *lineage.Context) (err error) {
		messages, err = c.messages(ctx, current)
		return err
	})
	return messages, err
}

// MessagesOf returns the messages of any branch.
func (c *Conversation) MessagesOf(ctx context.Context, id string) ([]Message, error) {
	of, err := c.thread.On(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.messages(ctx, of)
}

func (c *Conversation) messages(ctx context.Context, of *lineage.Context) ([]Message, error) {
	messages := []Message{}
	for e, err := range of.Entries(ctx, lineage.Window{}) {
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

// onCurrent does something with the context of the current branch, and again if it
// was deleted while that began.
func (c *Conversation) onCurrent(ctx context.Context, do func(*lineage.Context) error) error {
	current, err := c.thread.Active(ctx)
	if err != nil {
		return err
	}
	for {
		err := do(current)
		if !errors.Is(err, lineage.ErrNotFound) {
			return err
		}
		now, activeErr := c.thread.Active(ctx)
		if activeErr != nil || now.ID() == current.ID() {
			return err
		}
		current = now
	}
}
