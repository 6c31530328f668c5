package lineage

import (
	"context"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// CheckpointInfo is the current state of a checkpoint.
type CheckpointInfo struct {
	ID   structure.CheckpointID
	Name string
	// SourceID is the id that the caller chose, if any.
	SourceID  string
	Span      SpanRef
	CreatedAt time.Time
}

// CheckpointOptions configure a checkpoint.
type CheckpointOptions struct {
	// At is the span. Default: the tip of the active branch.
	At SpanRef
	// SourceID is an id chosen by the caller, unique in the thread.
	SourceID string
	// CreatedAt defaults to now.
	CreatedAt time.Time
}

func checkpointInfo(c *structure.Checkpoint) CheckpointInfo {
	return CheckpointInfo{ID: c.ID, Name: c.Name, SourceID: c.SourceID, Span: c.Span, CreatedAt: c.CreatedAt}
}

// SetCheckpoint names a span. An existing checkpoint of that name is moved and keeps its ids.
func (t *Thread) SetCheckpoint(ctx context.Context, name string, o CheckpointOptions) (CheckpointInfo, error) {
	if name == "" {
		return CheckpointInfo{}, fmt.Errorf("checkpoint without a name: %w", ErrInvalid)
	}
	if o.At.IsZero() {
		active, err := t.Active(ctx)
		if err != nil {
			return CheckpointInfo{}, err
		}
		if o.At, err = active.Tip(ctx); err != nil {
			return CheckpointInfo{}, err
		}
		if o.At.IsZero() {
			return CheckpointInfo{}, t.noMessages()
		}
	}
	var c *structure.Checkpoint
	err := t.change(ctx, func(b *write.Batch, thread *structure.Thread) error {
		checkpoint := write.Checkpoint{Name: name, SourceID: o.SourceID, At: o.At, CreatedAt: o.CreatedAt}
		was, err := t.store.engine.Checkpoint(ctx, t.id, name)
		switch {
		case err == nil:
			checkpoint.ID, checkpoint.SourceID = was.ID, was.SourceID
		case !isNotFound(err):
			return err
		}
		c = b.Checkpoint(thread, checkpoint)
		return nil
	})
	if err != nil {
		return CheckpointInfo{}, err
	}
	return checkpointInfo(c), nil
}

// Checkpoint returns the checkpoint with a name.
func (t *Thread) Checkpoint(ctx context.Context, name string) (CheckpointInfo, error) {
	c, err := t.store.engine.Checkpoint(ctx, t.id, name)
	if err != nil {
		return CheckpointInfo{}, err
	}
	return checkpointInfo(c), nil
}

// Checkpoints returns the thread's checkpoints, newest first.
func (t *Thread) Checkpoints(ctx context.Context) ([]CheckpointInfo, error) {
	checkpoints, err := backend.CheckpointsByCreation(ctx, t.store.engine, t.id)
	infos := make([]CheckpointInfo, len(checkpoints))
	for i, c := range checkpoints {
		infos[i] = checkpointInfo(c)
	}
	return infos, err
}

// DeleteCheckpoint deletes a checkpoint.
func (t *Thread) DeleteCheckpoint(ctx context.Context, name string) error {
	return t.change(ctx, func(b *write.Batch, _ *structure.Thread) error {
		_, err := t.store.engine.Checkpoint(ctx, t.id, name)
		b.DeleteCheckpoint(t.id, name)
		return err
	})
}
