package chat

import (
	"context"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

// itemOf returns the content of a message, without its time and without what it was derived from.
func itemOf(m *Message) lineage.Item {
	i := lineage.Item{Role: m.Name, Body: m.Data, Type: content.TypeJSON, SourceID: m.ID}
	if m.Type != TypeMessage {
		i.Metadata = typeMetadata(m.Type)
	}
	i.Origin = lineage.Origin{UserID: m.Origin.UserID, ModelID: m.Origin.ModelID, SourceID: m.Origin.SourceID}
	return i
}

// item returns the item that adds a message to the thread.
func (c *change) item(ctx context.Context, m *Message) (i lineage.Item, err error) {
	i = itemOf(m)
	i.CreatedAt = moment(m.CreatedAt)
	i.Origin.ParentID, err = c.source(ctx, m.Origin.DerivedFrom)
	return i, err
}

// keep makes the thread keep all messages that are added from now on.
func (c *change) keep(ctx context.Context) error {
	if c.t.Keeps {
		return nil
	}
	return c.thread.Update(ctx, func(i *lineage.ThreadInfo) error { i.Keeps = true; return nil })
}

// touch sets the update time of the chat to now. It does nothing if the added messages have about the current time,
// which then counts.
func (c *change) touch(ctx context.Context, added ...Message) error {
	limit := now().Add(-time.Second).UnixMilli()
	if slices.ContainsFunc(added, func(m Message) bool { return m.CreatedAt == 0 || m.CreatedAt > limit }) {
		return nil
	}
	return c.thread.Update(ctx, func(i *lineage.ThreadInfo) error { i.UpdatedAt = time.Time{}; return nil })
}

// AddMessage implements Store.
func (s *onStore) AddMessage(ctx context.Context, m Message) error {
	if err := m.Check(); err != nil {
		return err
	}
	return s.change(ctx, m.ChatID, func(c *change) error {
		at, known, err := c.find(ctx, m.ID, c.t.ID)
		if err != nil {
			return err
		}
		if known {
			is, err := c.reading(c.t).MessageAt(ctx, at)
			if err != nil {
				return err
			}
			return m.AgreesWith(is)
		}
		parent, err := c.position(ctx, m.ParentID)
		if err != nil {
			return err
		}
		item, err := c.item(ctx, &m)
		if err != nil {
			return err
		}
		if _, err = c.thread.AddAfter(ctx, parent, item); err != nil {
			return err
		}
		return c.touch(ctx, m)
	})
}

// Append implements Store.
func (s *onStore) Append(ctx context.Context, r AppendRequest) (Ref, error) {
	r, err := r.Normal()
	if err != nil {
		return "", err
	}
	err = s.change(ctx, r.ChatID, func(c *change) error {
		if err := c.keep(ctx); err != nil {
			return err
		}
		var branch *lineage.Context
		var err error
		if r.NewBranch != nil {
			made := *r.NewBranch
			branch, err = c.newBranch(ctx, &made)
		} else {
			branch, err = c.branchToExtend(ctx, &r)
		}
		if err != nil {
			return err
		}
		items := make([]lineage.Item, len(r.Messages))
		for i := range items {
			m := &r.Messages[i]
			_, known, err := c.find(ctx, m.ID, c.t.ID)
			if err == nil && known {
				err = c.refuse(m.ID, ErrExists)
			}
			if err == nil {
				items[i], err = c.item(ctx, m)
			}
			if err != nil {
				return err
			}
		}
		if _, err := branch.Extend(ctx, items...); err != nil {
			return err
		}
		return c.touch(ctx, r.Messages...)
	})
	if err != nil {
		return "", err
	}
	return Ref(r.Messages[len(r.Messages)-1].ID), nil
}

// branchToExtend returns the branch of a request. It must have the head that the request expects.
func (c *change) branchToExtend(ctx context.Context, r *AppendRequest) (*lineage.Context, error) {
	_, is, err := c.branch(ctx, c.t, r.BranchID)
	if err != nil {
		return nil, err
	}
	at, err := c.position(ctx, r.ExpectedHead)
	if err != nil {
		return nil, err
	}
	if at != is.Tip {
		actual, err := c.reading(c.t).IDAt(ctx, is.Tip)
		if err != nil {
			return nil, err
		}
		return nil, &HeadError{BranchID: r.BranchID, Expected: r.ExpectedHead, Actual: actual}
	}
	return c.store.Context(ctx, is.ID)
}
