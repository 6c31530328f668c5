package chat

import (
	"context"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// itemOf returns what is added to a thread as a message.
func itemOf(m *Message) lineage.Item {
	i := lineage.Item{Role: m.Name, Body: m.Data, Type: content.TypeJSON, SourceID: m.ID, CreatedAt: moment(m.CreatedAt)}
	if m.Type != TypeMessage {
		i.Metadata = kind{m.Type}.metadata()
	}
	return i
}

// keep makes a chat's thread keep the messages that are added to it from now on.
func keep(ctx context.Context, t *structure.Thread, thread *lineage.Thread) error {
	if t.Keeps {
		return nil
	}
	return thread.Update(ctx, func(i *lineage.ThreadInfo) error { i.Keeps = true; return nil })
}

// touch states that a chat is updated now, unless messages that were added say so by their own times, of now
// or a moment ago.
func touch(ctx context.Context, thread *lineage.Thread, added ...Message) error {
	limit := now().Add(-time.Second).UnixMilli()
	if slices.ContainsFunc(added, func(m Message) bool { return m.CreatedAt == 0 || m.CreatedAt > limit }) {
		return nil
	}
	return thread.Update(ctx, func(i *lineage.ThreadInfo) error { i.UpdatedAt = time.Time{}; return nil })
}

// AddMessage implements Store.
func (s *onStore) AddMessage(ctx context.Context, m Message) error {
	if err := m.Check(); err != nil {
		return err
	}
	return s.change(ctx, m.ChatID, func(in *state, t *structure.Thread, thread *lineage.Thread) error {
		p, known, err := in.find(ctx, m.ID, t.ID)
		if err != nil {
			return err
		}
		if known {
			is, err := in.messageAt(ctx, p)
			if err != nil {
				return err
			}
			return m.AgreesWith(*is)
		}
		parent, err := in.position(ctx, t, m.ParentID)
		if err != nil {
			return err
		}
		item := itemOf(&m)
		if item.Origin, err = in.originIn(ctx, t, &m); err != nil {
			return err
		}
		if _, err = thread.Hang(ctx, parent, item); err != nil {
			return err
		}
		return touch(ctx, thread, m)
	})
}

// Append implements Store.
func (s *onStore) Append(ctx context.Context, r AppendRequest) (Ref, error) {
	r, err := r.Normal()
	if err != nil {
		return "", err
	}
	items := make([]lineage.Item, len(r.Messages))
	for i := range items {
		items[i] = itemOf(&r.Messages[i])
	}
	err = s.change(ctx, r.ChatID, func(in *state, t *structure.Thread, thread *lineage.Thread) error {
		if err := keep(ctx, t, thread); err != nil {
			return err
		}
		var c *lineage.Context
		var err error
		if r.NewBranch != nil {
			made := *r.NewBranch
			c, err = in.newBranch(ctx, t, thread, &made)
		} else {
			c, err = in.branchToExtend(ctx, t, &r)
		}
		if err != nil {
			return err
		}
		for i := range items {
			if err := in.requireNew(ctx, t, items[i].SourceID); err != nil {
				return err
			}
			if items[i].Origin, err = in.originIn(ctx, t, &r.Messages[i]); err != nil {
				return err
			}
		}
		if _, err := c.Extend(ctx, items...); err != nil {
			return err
		}
		return touch(ctx, thread, r.Messages...)
	})
	if err != nil {
		return "", err
	}
	return Ref(r.Messages[len(r.Messages)-1].ID), nil
}

// branchToExtend returns the branch of a request, which must have the head that the request
// expects.
func (s *state) branchToExtend(ctx context.Context, t *structure.Thread, r *AppendRequest) (*lineage.Context, error) {
	_, c, err := s.branchIn(ctx, t, r.ChatID, r.BranchID)
	if err != nil {
		return nil, err
	}
	at, err := s.position(ctx, t, r.ExpectedHead)
	if err != nil {
		return nil, err
	}
	if at != c.Tip {
		actual, err := s.reading(t).IDAt(ctx, c.Tip)
		if err != nil {
			return nil, err
		}
		return nil, &HeadError{BranchID: r.BranchID, Expected: r.ExpectedHead, Actual: actual}
	}
	return s.store.Context(ctx, c.ID)
}

// requireNew refuses a message whose id is known.
func (s *state) requireNew(ctx context.Context, t *structure.Thread, id string) error {
	p, known, err := s.find(ctx, id, t.ID)
	switch {
	case err != nil || !known:
		return err
	case p.thread != t.ID:
		err = ErrOtherChat
	default:
		err = ErrExists
	}
	return &Error{Subject: SubjectMessage, ID: id, ChatID: IDOfThread(t), Err: err}
}
