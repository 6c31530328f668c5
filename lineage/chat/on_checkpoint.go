package chat

import (
	"cmp"
	"context"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// CreateCheckpoint implements Store.
func (s *onStore) CreateCheckpoint(ctx context.Context, k Checkpoint) (made Checkpoint, err error) {
	if err := k.Check(); err != nil {
		return Checkpoint{}, err
	}
	err = s.change(ctx, k.ChatID, func(c *openChat) error {
		at, err := c.position(ctx, Ref(k.MessageID))
		if err != nil {
			return err
		}
		made = k
		return c.putCheckpoint(ctx, at, &made)
	})
	return made, err
}

// putCheckpoint creates a checkpoint at a span or moves it there, and fills in its defaults.
func (c *openChat) putCheckpoint(ctx context.Context, at structure.SpanRef, k *Checkpoint) error {
	if at.IsZero() {
		return &Error{Subject: SubjectCheckpoint, ID: k.Name, ChatID: k.ChatID, Err: ErrInvalid, Detail: "no message"}
	}
	k.CreatedAt = moment(k.CreatedAt).UnixMilli()
	_, err := c.from.Checkpoint(ctx, c.t.ID, k.Name)
	if err != nil && !isNotFound(err) {
		return err
	}
	if isNew := err != nil; isNew && k.ID != "" {
		for _, err := range c.from.CheckpointsBySource(ctx, k.ID, c.t.ID) { // the first one decides
			if err == nil {
				err = &Error{Subject: SubjectCheckpoint, ID: k.ID, Err: ErrExists}
			}
			return err
		}
	}
	set, err := c.thread.SetCheckpoint(ctx, k.Name, lineage.CheckpointOptions{At: at, SourceID: k.ID, CreatedAt: moment(k.CreatedAt)})
	k.ID = cmp.Or(set.SourceID, set.ID.String())
	return err
}

// Checkpoint returns a checkpoint of the thread.
func (r *ThreadReader) Checkpoint(ctx context.Context, c *structure.Checkpoint) (Checkpoint, error) {
	message, err := r.IDAt(ctx, c.Span)
	return Checkpoint{
		ID: cmp.Or(c.SourceID, c.ID.String()), ChatID: IDOfThread(r.thread), Name: c.Name, MessageID: string(message), CreatedAt: c.CreatedAt.UnixMilli(),
	}, err
}

// Checkpoint implements Store.
func (s *onStore) Checkpoint(ctx context.Context, chatID, name string) (*Checkpoint, error) {
	t, err := s.thread(ctx, chatID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	c, err := s.from.Checkpoint(ctx, t.ID, name)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	return orNone(s.reading(t).Checkpoint(ctx, c))
}

// ListCheckpoints implements Store.
func (s *onStore) ListCheckpoints(ctx context.Context, chatID string) ([]Checkpoint, error) {
	t, err := s.thread(ctx, chatID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	r := s.reading(t)
	all, err := backend.CheckpointsByCreation(ctx, s.from, t.ID)
	if err != nil {
		return nil, err
	}
	checkpoints := make([]Checkpoint, len(all))
	for i, c := range all {
		if checkpoints[i], err = r.Checkpoint(ctx, c); err != nil {
			return nil, err
		}
	}
	return checkpoints, nil
}

// DeleteCheckpoint implements Store.
func (s *onStore) DeleteCheckpoint(ctx context.Context, chatID, name string) error {
	return ignoreNotFound(s.change(ctx, chatID, func(c *openChat) error {
		return c.thread.DeleteCheckpoint(ctx, name)
	}))
}
