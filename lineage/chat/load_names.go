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

// finish adds the new versions, branches and checkpoints, and updates the chat itself.
func (s *loading) finish(ctx context.Context) error {
	for range maxRounds {
		var r *renewal
		err := s.commit(ctx, s.at, func(c *openChat) (err error) {
			r, err = s.finishOnce(ctx, c)
			return err
		})
		if err != nil {
			return err
		}
		if done, err := r.end(ctx); done || err != nil {
			return err
		}
	}
	return nil
}

func (s *loading) finishOnce(ctx context.Context, c *openChat) (*renewal, error) {
	s.nameProblems = nil
	r, err := s.renew(ctx, c)
	if err == nil {
		err = s.names(ctx, c, r)
	}
	if err != nil {
		return nil, err
	}
	thread, err := c.from.Thread(ctx, c.t.ID)
	if err == nil {
		err = s.checkUser(thread.UserID)
	}
	if err != nil {
		return nil, err
	}
	thread.UserID, thread.UpdatedAt = cmp.Or(thread.UserID, s.from.Chat.UserID), c.t.UpdatedAt
	if s.later {
		thread.Title, thread.Metadata, thread.UpdatedAt = s.from.Chat.Title, s.from.Chat.Metadata, s.at
	}
	if c.stage().Changes() == 0 && structure.Equal(thread, c.t) {
		return r, nil
	}
	if thread.UpdatedAt.Equal(c.t.UpdatedAt) {
		thread.UpdatedAt = thread.UpdatedAt.Add(time.Millisecond) // every state has another time
	}
	_, err = write.Of(c.store).Make(ctx, func(b *write.Batch, _ write.Try) error {
		b.StateThread(*thread)
		return nil
	})
	return r, err
}

// note records an error about one thing that cannot be loaded, and returns nil. Other errors are returned.
func (s *loading) note(err error) error {
	if isCollected(err) {
		return err
	}
	if errors.Is(err, ErrExists) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrOtherChat) {
		s.nameProblems = append(s.nameProblems, err)
		return nil
	}
	return err
}

// position returns the span of a message that a branch or checkpoint points to.
func (s *loading) position(ctx context.Context, c *openChat, id Ref) (structure.SpanRef, error) {
	at, err := c.position(ctx, id)
	if was := s.listed[string(id)].at; isMissing(err) && !was.IsZero() {
		err = &backend.SubjectError{Subject: "span", ID: was.String(), Err: backend.ErrNotFound}
	}
	return at, err
}

// names adds or moves branches and checkpoints.
func (s *loading) names(ctx context.Context, c *openChat, r *renewal) error {
	if err := c.moveNames(ctx, r); err != nil {
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

// moveNames moves branches and checkpoints from earlier versions to the new ones.
func (c *openChat) moveNames(ctx context.Context, r *renewal) error {
	if len(r.renewed) == 0 {
		return nil
	}
	for b, err := range c.from.Branches(ctx, c.t.ID, "", "") {
		if err != nil {
			return err
		}
		head, err := c.from.Context(ctx, b.Context)
		if err != nil {
			return err
		}
		if err := c.move(ctx, &head, r.latestVersion(head.Tip), "load"); err != nil {
			return err
		}
	}
	for k, err := range c.from.Checkpoints(ctx, c.t.ID, "") {
		if err != nil {
			return err
		}
		if to := r.latestVersion(k.Span); to != k.Span {
			_, err := c.thread.SetCheckpoint(ctx, k.Name, lineage.CheckpointOptions{At: to, CreatedAt: k.CreatedAt})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// loadBranch adds a branch, or moves it to its head in the chat.
func (s *loading) loadBranch(ctx context.Context, c *openChat, b Branch) error {
	if err := b.Check(); err != nil {
		return err
	}
	head, err := s.position(ctx, c, b.HeadMessageID)
	if err != nil {
		return err
	}
	branch, err := c.from.Branch(ctx, c.t.ID, b.Name)
	if isNotFound(err) {
		branch, err = s.nameContext(ctx, c, &b)
	}
	if err != nil {
		return err
	}
	if branch == nil {
		_, err := c.newBranch(ctx, &b)
		return err
	}
	current, err := c.from.Context(ctx, branch.Context)
	if err != nil {
		return err
	}
	if extended, err := s.extendedInStore(ctx, c, head, current.Tip); err != nil || extended {
		return err
	}
	return c.move(ctx, &current, head, "load")
}

// extendedInStore reports whether a branch whose head is loaded has messages after it that only the store has.
func (s *loading) extendedInStore(ctx context.Context, c *openChat, head, tip structure.SpanRef) (bool, error) {
	after, err := structure.IsAncestor(head, tip, c.runs(ctx))
	if err != nil || !after {
		return false, err
	}
	last, err := c.reading(c.t).IDAt(ctx, tip)
	if err != nil {
		return false, err
	}
	_, listed := s.listed[string(last)]
	return !listed, nil
}

// nameContext makes a branch from the context that the loading creates for it. It returns nil if there is none.
func (s *loading) nameContext(ctx context.Context, c *openChat, b *Branch) (*structure.Branch, error) {
	if s.from.Context == nil {
		return nil, nil
	}
	id, err := s.from.Context(ctx, c.store, *b)
	if err != nil || id.IsZero() {
		return nil, err
	}
	if named, err := backend.BranchOf(ctx, c.from, c.t.ID, id); named != nil || err != nil {
		return nil, err // the context has a name already
	}
	for _, err := range c.from.BranchesBySource(ctx, b.ID, structure.ThreadID{}) {
		return nil, err // another branch has the id
	}
	var named *structure.Branch
	_, err = write.Of(c.store).Make(ctx, func(w *write.Batch, _ write.Try) error {
		was, err := c.from.Thread(ctx, c.t.ID)
		if err != nil {
			return err
		}
		thread := *was
		named = w.Branch(&thread, b.Name, b.ID, id, moment(b.CreatedAt))
		thread.Active = cmp.Or(thread.Active, id)
		w.StateThread(thread)
		return nil
	})
	return named, err
}

// loadCheckpoint adds a checkpoint, or moves it unless it was set later in the store.
func (s *loading) loadCheckpoint(ctx context.Context, c *openChat, k Checkpoint) error {
	if err := k.Check(); err != nil {
		return err
	}
	at, err := s.position(ctx, c, Ref(k.MessageID))
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
