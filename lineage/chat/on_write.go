package chat

import (
	"cmp"
	"context"

	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// item returns the item that adds a message to the thread.
func (c *openChat) item(ctx context.Context, m *Message) (i lineage.Item, err error) {
	i = itemOf(m)
	i.CreatedAt = moment(m.CreatedAt)
	i.Origin.ParentID, err = c.source(ctx, m.Origin.DerivedFrom)
	return i, err
}

// AddMessage implements Store.
func (s *onStore) AddMessage(ctx context.Context, m Message) error { return s.add(ctx, m, false) }

// Replace is AddMessage of On(store) for replies that are saved again and again while they grow. If the chat has
// another message that was added with the id after the same parent, and no message follows it, the new message takes
// the id. The old one stays in the chat under another id, and branches and checkpoints still point to it: see
// MoveAlong.
//
// What other calls of Replace add, and what is appended to the active branch, counts as following even if it is added
// at the same time. A message that AddMessage adds at the same time may be left after the old one.
func Replace(ctx context.Context, store *lineage.Store, m Message) error {
	for try := 1; ; try++ {
		s := latest(store)
		err := s.add(ctx, m, true)
		if try == mostReplaced || !write.About(err, "source id", ErrExists) {
			return err
		}
		// Another writer was first again.
	}
}

// mostReplaced limits the attempts while other writers replace the same message.
const mostReplaced = 100

func (s *state) add(ctx context.Context, m Message, replace bool) error {
	if err := m.Check(); err != nil {
		return err
	}
	return s.change(ctx, m.ChatID, func(c *openChat) error {
		at, known, err := c.find(ctx, m.ID, c.t.ID)
		if err != nil {
			return err
		}
		if known {
			added, err := c.reading(c.t).MessageAt(ctx, at)
			if err != nil {
				return err
			}
			err = m.AgreesWith(added)
			if err == nil || !replace || added.ParentID != m.ParentID {
				return err
			}
			if own, failed := c.addedAs(ctx, at, m.ID); !own || failed != nil {
				return cmp.Or(failed, err)
			}
			if failed := c.expectActive(ctx); failed != nil {
				return failed
			}
			if followed, failed := c.followed(ctx, c.reading(c.t), at); followed || failed != nil {
				return cmp.Or(failed, err)
			}
		}
		parent, err := c.position(ctx, m.ParentID)
		if err != nil {
			return err
		}
		if known {
			if err := c.addVersion(ctx, parent, m); err != nil {
				return err
			}
			return c.touch(ctx, m)
		}
		item, err := c.item(ctx, &m)
		if err != nil {
			return err
		}
		if _, err = c.thread.AddAfter(ctx, parent, item); err != nil {
			return err
		}
		if replace && !parent.IsZero() {
			// The parent may be replaced at the same time. That expects the state of the thread, as this does.
			return c.touch(ctx)
		}
		return c.touch(ctx, m)
	})
}

// addedAs reports whether the message at a span was added with the id. Otherwise the id was derived from the span.
func (c *openChat) addedAs(ctx context.Context, at structure.SpanRef, id string) (bool, error) {
	step, err := c.step(ctx, at, backend.PathOptions{})
	if err != nil {
		return false, err
	}
	added, _ := sourceOf(step.Span.Usages)
	return added == id, nil
}

// expectActive makes the transaction expect that the active branch stays where it is.
func (c *openChat) expectActive(ctx context.Context) error {
	if c.t.Active.IsZero() {
		return nil
	}
	_, err := c.from.Context(ctx, c.t.Active) // the stage expects what it has read
	return ignoreNotFound(err)
}

// addVersion adds a message as the latest version of the existing message with its id.
func (c *openChat) addVersion(ctx context.Context, parent structure.SpanRef, m Message) error {
	m.CreatedAt = moment(m.CreatedAt).UnixMilli()
	data, err := asData(&m)
	if err != nil {
		return err
	}
	from, err := c.source(ctx, m.Origin.DerivedFrom)
	if err != nil {
		return err
	}
	(&message{content: data}).derive(from)
	stage := c.stage()
	_, err = write.Of(c.store).Make(ctx, func(b *write.Batch, try write.Try) error {
		if try.Err != nil {
			return try.Err // the state of a transaction does not change
		}
		p := place.New(ctx, write.Of(c.store), staged{stage}, b, make(place.Contents), c.t, place.Rules{
			Fresh: stage.IsFresh(), Latest: true,
			Same: func(*place.Message, *structure.Span) (bool, error) { return false, nil }, // it was compared with the latest
		})
		found, err := p.Find(parent, &data)
		if err == nil && !found.How.Has() {
			_, err = p.Add(parent, &data, found)
		}
		return err
	})
	return err
}

// Append implements Store.
func (s *onStore) Append(ctx context.Context, r AppendRequest) (Ref, error) {
	r, err := r.Normal()
	if err != nil {
		return "", err
	}
	err = s.change(ctx, r.ChatID, func(c *openChat) error {
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
func (c *openChat) branchToExtend(ctx context.Context, r *AppendRequest) (*lineage.Context, error) {
	_, head, err := c.branch(ctx, c.t, r.BranchID)
	if err != nil {
		return nil, err
	}
	at, err := c.position(ctx, r.ExpectedHead)
	if err != nil {
		return nil, err
	}
	if at != head.Tip {
		actual, err := c.reading(c.t).IDAt(ctx, head.Tip)
		if err != nil {
			return nil, err
		}
		return nil, &HeadError{BranchID: r.BranchID, Expected: r.ExpectedHead, Actual: actual}
	}
	return c.store.Context(ctx, head.ID)
}
