package chat

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// mostRounds bounds how often a loading looks again for messages that others added meanwhile
// after earlier versions. What is left is for the next loading.
const mostRounds = 10

// finish brings new versions, branches and checkpoints, and the chat itself to where they
// are.
func (s *loading) finish(ctx context.Context) error {
	for round := 1; ; round++ {
		again := false
		err := s.commit(ctx, s.at, func(in *state) (err error) {
			again, err = s.finishOnce(ctx, in)
			return err
		})
		if err != nil {
			return err
		}
		s.report(s.circular)
		if !again || round == mostRounds {
			s.report(s.problems)
			return nil
		}
		// Somebody may have added a message after an earlier version meanwhile.
		s.done.New += len(s.versions)
		s.versions = nil
	}
}

func (s *loading) report(problems []error) {
	for _, problem := range problems {
		s.from.Problem(problem)
	}
}

func (s *loading) finishOnce(ctx context.Context, in *state) (renewed bool, err error) {
	was, err := s.chat(ctx, in)
	if err != nil {
		return false, err
	}
	h, renewed, err := s.renew(ctx, in, was)
	if err != nil {
		return false, err
	}
	if err := s.names(ctx, in, h); err != nil {
		return false, err
	}
	t, err := in.from.Thread(ctx, s.thread)
	if err != nil {
		return false, err
	}
	if err := s.checkUser(t.UserID); err != nil {
		return false, err
	}
	is := *t
	is.UserID = cmp.Or(t.UserID, s.from.Chat.UserID)
	if s.later {
		is.Title, is.Metadata, is.UpdatedAt = s.from.Chat.Title, s.from.Chat.Metadata, s.at
	}
	switch {
	case s.later && (is.Title != was.Title || !bytes.Equal(is.Metadata, was.Metadata) || !s.at.Equal(was.UpdatedAt)):
	case is.UserID == was.UserID && !in.changed():
		return false, nil
	default:
		is.UpdatedAt = was.UpdatedAt.Add(time.Millisecond) // every state differs
	}
	_, err = write.Of(in.store).Make(ctx, func(b *write.Batch, _ write.Try) error {
		b.StateThread(is)
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
func (s *loading) names(ctx context.Context, in *state, h *history) error {
	t, err := in.from.Thread(ctx, s.thread)
	if err != nil {
		return err
	}
	thread, err := in.store.Thread(ctx, s.thread)
	if err != nil {
		return err
	}
	s.problems = nil
	branches := s.from.Branches
	if t.Active.IsZero() && len(branches) == 0 {
		branches = []Branch{{Name: MainBranch, IsActive: true, CreatedAt: s.from.Chat.CreatedAt}}
	}
	active, done := "", make(map[string]bool)
	for _, b := range branches {
		b.ChatID = s.from.Chat.ID
		err := s.branchAs(ctx, in, h, t, thread, b)
		if err == nil && b.IsActive && s.later {
			active = b.Name
		}
		done[b.Name] = err == nil
		if err := s.note(err); err != nil {
			return err
		}
	}
	if active != "" {
		if err := thread.Switch(ctx, active); err != nil {
			return err
		}
	}
	for _, k := range s.from.Checkpoints {
		k.ChatID = s.from.Chat.ID
		if err := s.note(s.checkpointAs(ctx, in, t, thread, k)); err != nil {
			return err
		}
	}
	return s.moveOthers(ctx, in, h, thread, done)
}

// branchAs brings a branch to where it is.
func (s *loading) branchAs(ctx context.Context, in *state, h *history, t *structure.Thread, thread *lineage.Thread, b Branch) error {
	if err := b.Check(); err != nil {
		return err
	}
	known, err := in.from.Branch(ctx, s.thread, b.Name)
	if isNotFound(err) {
		b.IsActive = false // that is the caller's to say
		_, err := in.newBranch(ctx, t, thread, &b)
		return err
	}
	if err != nil {
		return err
	}
	c, err := in.from.Context(ctx, known.Context)
	if err != nil {
		return err
	}
	head, err := in.position(ctx, t, b.HeadMessageID)
	if err != nil {
		return err
	}
	at := h.now(c.Tip)
	passed, err := structure.IsAncestor(head, at, in.runs(ctx))
	if err != nil {
		return err
	}
	if passed {
		last, err := in.reading(t).IDAt(ctx, at)
		if err != nil {
			return err
		}
		if !s.listed[string(last)] {
			head = at // what follows is the store's own
		}
	}
	if head == c.Tip {
		return nil
	}
	return in.move(ctx, &c, head, "load")
}

// checkpointAs brings a checkpoint to where it is, unless it was set later.
func (s *loading) checkpointAs(ctx context.Context, in *state, t *structure.Thread, thread *lineage.Thread, k Checkpoint) error {
	if err := k.Check(); err != nil {
		return err
	}
	at, err := in.position(ctx, t, Ref(k.MessageID))
	if err != nil {
		return err
	}
	made := time.UnixMilli(k.CreatedAt).UTC()
	known, err := in.from.Checkpoint(ctx, s.thread, k.Name)
	if err != nil && !isNotFound(err) {
		return err
	}
	if err == nil && (known.Span == at && known.CreatedAt.Equal(made) || known.CreatedAt.After(made)) {
		return nil
	}
	return in.putCheckpoint(ctx, thread, at, &k)
}

// moveOthers moves the branches and checkpoints that still lead to earlier versions, but for
// the branches that are done.
func (s *loading) moveOthers(ctx context.Context, in *state, h *history, thread *lineage.Thread, done map[string]bool) error {
	for b, err := range in.from.Branches(ctx, s.thread, "", "") {
		if err != nil {
			return err
		}
		if done[b.Name] {
			continue
		}
		c, err := in.from.Context(ctx, b.Context)
		if err != nil {
			return err
		}
		if to := h.now(c.Tip); to != c.Tip {
			if err := in.move(ctx, &c, to, "load"); err != nil {
				return err
			}
		}
	}
	for k, err := range in.from.Checkpoints(ctx, s.thread, "") {
		if err != nil {
			return err
		}
		if to := h.now(k.Span); to != k.Span {
			_, err := thread.SetCheckpoint(ctx, k.Name, lineage.CheckpointOptions{At: to, CreatedAt: k.CreatedAt})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
