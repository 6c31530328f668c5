package chat

import (
	"context"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// openChat is a chat in a state: inside a transaction, where it is changed, or in the current state, where it is only
// read.
type openChat struct {
	*state
	t      *structure.Thread // as of the start of the change
	thread *lineage.Thread
}

// change changes an existing chat in one transaction.
func (s *state) change(ctx context.Context, chatID string, do func(c *openChat) error) error {
	return s.update(ctx, func(in *state) error {
		t, err := in.thread(ctx, chatID)
		if err != nil {
			return err
		}
		thread, err := in.store.Thread(ctx, t.ID)
		if err != nil {
			return err
		}
		return do(&openChat{state: in, t: t, thread: thread})
	})
}

// touch sets the update time of the chat to now. It does nothing if the added messages have about the current time,
// which then counts.
func (c *openChat) touch(ctx context.Context, added ...Message) error {
	limit := now().Add(-time.Second).UnixMilli()
	if slices.ContainsFunc(added, func(m Message) bool { return m.CreatedAt == 0 || m.CreatedAt > limit }) {
		return nil
	}
	return c.thread.Update(ctx, func(i *lineage.ThreadInfo) error { i.UpdatedAt = time.Time{}; return nil })
}

// keep makes the thread keep all messages that are added from now on.
func (c *openChat) keep(ctx context.Context) error {
	if c.t.Keeps {
		return nil
	}
	return c.thread.Update(ctx, func(i *lineage.ThreadInfo) error { i.Keeps = true; return nil })
}
