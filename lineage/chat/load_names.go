package chat

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// mostRounds bounds how often a loading looks again for messages that others added meanwhile
// after earlier versions. What is left is for the next loading.
const mostRounds = 10

// finish brings new versions, branches and checkpoints, and the chat itself to where they
// are.
func (s *loading) finish(ctx context.Context) error {
	for round := range mostRounds {
		renewed := false
		err := s.commit(ctx, s.at, func(c *change) (err error) {
			renewed, err = s.finishOnce(ctx, c)
			return err
		})
		if err != nil {
			return err
		}
		if !renewed {
			break
		}
		if round == 0 {
			s.done.New += len(s.versions)
		}
	}
	for _, problem := range s.problems {
		s.from.Problem(problem)
	}
	return nil
}

func (s *loading) finishOnce(ctx context.Context, c *change) (renewed bool, err error) {
	s.problems = nil
	h, renewed, err := s.renew(ctx, c)
	if err == nil {
		err = s.names(ctx, c, h)
	}
	if err != nil {
		return false, err
	}
	is, err := c.from.Thread(ctx, c.t.ID)
	if err == nil {
		err = s.checkUser(is.UserID)
	}
	if err != nil {
		return false, err
	}
	is.UserID, is.UpdatedAt = cmp.Or(is.UserID, s.from.Chat.UserID), c.t.UpdatedAt
	if s.later {
		is.Title, is.Metadata, is.UpdatedAt = s.from.Chat.Title, s.from.Chat.Metadata, s.at
	}
	if c.stage().Changes() == 0 && structure.Equal(is, c.t) {
		return false, nil
	}
	if is.UpdatedAt.Equal(c.t.UpdatedAt) {
		is.UpdatedAt = is.UpdatedAt.Add(time.Millisecond) // every state differs
	}
	_, err = write.Of(c.store).Make(ctx, func(b *write.Batch, _ write.Try) error {
		b.StateThread(*is)
		return nil
	})
	return renewed, err
}

// note notes an error about one thing that cannot be loaded, and returns one about the store.
func (s *loading) note(err error) error {
	if errors.Is(err, ErrExists) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrOtherChat) {
		s.problems = append(s.problems, err)
		return nil
	}
	return err
}

// names brings branches and checkpoints.
func (s *loading) names(ctx context.Context, c *change, h *history) error {
	if err := c.moveNames(ctx, h); err != nil {
		return err
	}
	branches := s.from.Branches
	if c.t.Active.IsZero() && len(branches) == 0 {
		branches = []Branch{{Name: MainBranch, IsActive: true, CreatedAt: s.from.Chat.CreatedAt}}
	}
	for _, b := range branches {
		b.ChatID, b.IsActive = s.from.Chat.ID, b.IsActive && s.later
		err := s.loadBranch(ctx, c, b)
		if err == nil && b.IsActive {
			err = c.thread.Switch(ctx, b.Name)
		}
		if err := s.note(err); err != nil {
			return err
		}
	}
	for _, k := range s.from.Checkpoints {
		k.ChatID = s.from.Chat.ID
		if err := s.note(s.loadCheckpoint(ctx, c, k)); err != nil {
			return err
		}
	}
	return nil
}

// moveNames moves the branches and checkpoints that lead to earlier versions.
func (c *change) moveNames(ctx context.Context, h *history) error {
	for b, err := range c.from.Branches(ctx, c.t.ID, "", "") {
		if err != nil {
			return err
		}
		is, err := c.from.Context(ctx, b.Context)
		if err != nil {
			return err
		}
		if err := c.move(ctx, &is, h.now(is.Tip), "load"); err != nil {
			return err
		}
	}
	for k, err := range c.from.Checkpoints(ctx, c.t.ID, "") {
		if err != nil {
			return err
		}
		if to := h.now(k.Span); to != k.Span {
			_, err := c.thread.SetCheckpoint(ctx, k.Name, lineage.CheckpointOptions{At: to, CreatedAt: k.CreatedAt})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// loadBranch brings a branch to where it is.
func (s *loading) loadBranch(ctx context.Context, c *change, b Branch) error {
	if err := b.Check(); err != nil {
		return err
	}
	known, err := c.from.Branch(ctx, c.t.ID, b.Name)
	if isNotFound(err) {
		known, err = s.nameContext(ctx, c, &b)
		if err == nil && known == nil {
			_, err := c.newBranch(ctx, &b)
			return err
		}
	}
	if err != nil {
		return err
	}
	is, err := c.from.Context(ctx, known.Context)
	if err != nil {
		return err
	}
	head, err := c.position(ctx, b.HeadMessageID)
	if err != nil {
		return err
	}
	passed, err := structure.IsAncestor(head, is.Tip, c.runs(ctx))
	if err != nil {
		return err
	}
	if passed {
		last, err := c.reading(c.t).IDAt(ctx, is.Tip)
		if err != nil {
			return err
		}
		if _, listed := s.listed[string(last)]; !listed {
			return nil // what follows is the store's own
		}
	}
	return c.move(ctx, &is, head, "load")
}

// nameContext makes a branch of the context that the loading brings for it, nil if there is none.
func (s *loading) nameContext(ctx context.Context, c *change, b *Branch) (*structure.Branch, error) {
	if s.from.Context == nil {
		return nil, nil
	}
	id, err := s.from.Context(ctx, c.store, *b)
	if err != nil || id.IsZero() {
		return nil, err
	}
	if named, err := backend.BranchOf(ctx, c.from, c.t.ID, id); named != nil || err != nil {
		return nil, err
	}
	for _, err := range c.from.BranchesBySource(ctx, b.ID, structure.ThreadID{}) {
		return nil, err
	}
	var named *structure.Branch
	_, err = write.Of(c.store).Make(ctx, func(w *write.Batch, _ write.Try) error {
		was, err := c.from.Thread(ctx, c.t.ID)
		if err != nil {
			return err
		}
		is := *was
		named = w.Branch(&is, b.Name, b.ID, id, moment(b.CreatedAt))
		is.Active = cmp.Or(is.Active, id)
		w.StateThread(is)
		return nil
	})
	return named, err
}

// loadCheckpoint brings a checkpoint to where it is, unless it was set later.
func (s *loading) loadCheckpoint(ctx context.Context, c *change, k Checkpoint) error {
	if err := k.Check(); err != nil {
		return err
	}
	at, err := c.position(ctx, Ref(k.MessageID))
	if err != nil {
		return err
	}
	made := time.UnixMilli(k.CreatedAt).UTC()
	known, err := c.from.Checkpoint(ctx, c.t.ID, k.Name)
	if err != nil && !isNotFound(err) {
		return err
	}
	if err == nil && (known.Span == at && known.CreatedAt.Equal(made) || known.CreatedAt.After(made)) {
		return nil
	}
	return c.putCheckpoint(ctx, at, &k)
}
