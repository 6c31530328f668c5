package chat

import (
	"cmp"
	"context"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// checkpointContext is the context that comes with a checkpoint that is made here.
// It keeps the id that its caller chose, and keeps others from taking it.
func checkpointContext(id structure.CheckpointID) structure.ContextID {
	return structure.DeriveID[structure.ContextID](string(SubjectCheckpoint), id.String())
}

// CreateCheckpoint implements Store.
func (s *onStore) CreateCheckpoint(ctx context.Context, c Checkpoint) (Checkpoint, error) {
	if err := c.Check(); err != nil {
		return Checkpoint{}, err
	}
	made := c
	for {
		thread, err := s.mustThread(ctx, c.ChatID)
		if err != nil {
			return Checkpoint{}, err
		}
		err = s.change(ctx, thread, func(t *structure.Thread) ([]structure.Record, error) {
			at, err := s.position(ctx, t.ID, c.ChatID, Ref(c.MessageID))
			if err != nil {
				return nil, err
			}
			if at.IsZero() {
				return nil, &Error{Subject: SubjectCheckpoint, ID: c.Name, ChatID: c.ChatID, Err: ErrInvalid, Detail: "no message"}
			}
			made.CreatedAt = moment(c.CreatedAt).UnixMilli()
			record := &structure.Checkpoint{Thread: t.ID, Name: c.Name, Span: at, CreatedAt: moment(made.CreatedAt)}
			known, err := s.engine.Checkpoint(ctx, t.ID, c.Name)
			if isNotFound(err) {
				return s.newCheckpoint(ctx, record, &made)
			}
			if err != nil {
				return nil, err
			}
			record.ID = known.ID
			made.ID, err = s.checkpointID(ctx, known.ID)
			return []structure.Record{record}, err
		})
		if err == nil {
			return made, nil
		}
		if !isRace(err) {
			return Checkpoint{}, err
		}
	}
}

func (s *onStore) newCheckpoint(ctx context.Context, record *structure.Checkpoint, c *Checkpoint) ([]structure.Record, error) {
	if c.ID == "" {
		c.ID = structure.NewID[structure.CheckpointID]().String()
	}
	record.ID = pointerID[structure.CheckpointID](SubjectCheckpoint, c.ID)
	if _, err := s.engine.Context(ctx, checkpointContext(record.ID)); err == nil {
		return nil, &Error{Subject: SubjectCheckpoint, ID: c.ID, Err: ErrExists}
	} else if !isNotFound(err) {
		return nil, err
	}
	return []structure.Record{
		&structure.Context{
			ID: checkpointContext(record.ID), Thread: record.Thread,
			Metadata: label{Checkpoint: c.ID}.metadata(), CreatedAt: record.CreatedAt,
		},
		record,
	}, nil
}

// checkpointID returns the id that a checkpoint's caller chose.
func (s *onStore) checkpointID(ctx context.Context, id structure.CheckpointID) (string, error) {
	return checkpointID(ctx, s.engine, id)
}

func checkpointID(ctx context.Context, from backend.Reader, id structure.CheckpointID) (string, error) {
	c, err := from.Context(ctx, checkpointContext(id))
	if err == nil {
		if l := labelOf(c.Metadata); l.Checkpoint != "" {
			return l.Checkpoint, nil
		}
	}
	if err != nil && !isNotFound(err) {
		return "", err
	}
	return id.String(), nil
}

func (s *onStore) checkpointAt(ctx context.Context, chatID string, c *structure.Checkpoint) (Checkpoint, error) {
	id, err := s.checkpointID(ctx, c.ID)
	if err != nil {
		return Checkpoint{}, err
	}
	message, err := s.idAt(ctx, c.Thread, c.Span)
	return Checkpoint{ID: id, ChatID: chatID, Name: c.Name, MessageID: string(message), CreatedAt: c.CreatedAt.UnixMilli()}, err
}

// Checkpoint implements Store.
func (s *onStore) Checkpoint(ctx context.Context, chatID, name string) (*Checkpoint, error) {
	thread, err := s.thread(ctx, chatID)
	if err != nil || thread == nil || name == "" {
		return nil, err
	}
	c, err := s.engine.Checkpoint(ctx, thread.ID(), name)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := s.checkpointAt(ctx, chatID, c)
	if err != nil {
		return nil, err
	}
	return &found, nil
}

// ListCheckpoints implements Store.
func (s *onStore) ListCheckpoints(ctx context.Context, chatID string) ([]Checkpoint, error) {
	thread, err := s.thread(ctx, chatID)
	if err != nil || thread == nil {
		return nil, err
	}
	var checkpoints []Checkpoint
	for c, err := range s.engine.Checkpoints(ctx, thread.ID(), "") {
		if err != nil {
			return nil, err
		}
		found, err := s.checkpointAt(ctx, chatID, c)
		if err != nil {
			return nil, err
		}
		checkpoints = append(checkpoints, found)
	}
	slices.SortStableFunc(checkpoints, func(a, b Checkpoint) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return checkpoints, nil
}

// DeleteCheckpoint implements Store.
func (s *onStore) DeleteCheckpoint(ctx context.Context, chatID, name string) error {
	for {
		thread, err := s.thread(ctx, chatID)
		if err != nil || thread == nil || name == "" {
			return err
		}
		err = s.change(ctx, thread.ID(), func(t *structure.Thread) ([]structure.Record, error) {
			return s.deletedCheckpoint(ctx, t.ID, name)
		})
		if !isRace(err) && !isAbout(err, "checkpoint", ErrNotFound) {
			return err
		}
		if isAbout(err, "checkpoint", ErrNotFound) {
			return nil
		}
	}
}

func (s *onStore) deletedCheckpoint(ctx context.Context, thread structure.ThreadID, name string) ([]structure.Record, error) {
	c, err := s.engine.Checkpoint(ctx, thread, name)
	if err != nil {
		return nil, err
	}
	records := []structure.Record{&structure.Deletion{Subject: structure.KindCheckpoint, Thread: thread, Name: name, At: now()}}
	_, err = s.engine.Context(ctx, checkpointContext(c.ID))
	if isNotFound(err) {
		return records, nil
	}
	return append(records, &structure.Deletion{Subject: structure.KindContext, Context: checkpointContext(c.ID), At: now()}), err
}
