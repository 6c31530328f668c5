package chat

import (
	"cmp"
	"context"
	"errors"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// branch returns the branch of a chat with an id, and its context. If the branch belongs to another chat, the error
// is ErrOtherChat.
func (s *state) branch(ctx context.Context, t *structure.Thread, id string) (*structure.Branch, *backend.Context, error) {
	b, c, err := s.branchWith(ctx, id)
	if err == nil && b.Thread != t.ID {
		err = ErrOtherChat
	}
	if isMissing(err) {
		err = &Error{Subject: SubjectBranch, ID: id, ChatID: IDOfThread(t), Err: err}
	}
	if err != nil {
		return nil, nil, err
	}
	return b, c, nil
}

// branchWith returns the branch of any chat with an id, and its context.
func (s *state) branchWith(ctx context.Context, id string) (*structure.Branch, *backend.Context, error) {
	var b *structure.Branch
	c, err := s.from.Context(ctx, lineage.SourceBranch(id))
	if err == nil && !c.Thread.IsZero() {
		b, err = backend.BranchOf(ctx, s.from, c.Thread, c.ID)
	} else if isNotFound(err) { // a deleted branch with the id may have forks
		for b, err = range s.from.BranchesBySource(ctx, id, structure.ThreadID{}) {
			if err == nil {
				c, err = s.from.Context(ctx, b.Context)
			}
			break
		}
	}
	if isNotFound(err) || err == nil && (b == nil || branchID(b) != id) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, nil, err
	}
	return b, &c, nil
}

// branchID returns the id of a branch: the caller's id, or that of its context if the caller chose none.
func branchID(b *structure.Branch) string { return cmp.Or(b.SourceID, b.Context.String()) }

// newBranch creates a branch, and fills in its defaults.
func (c *openChat) newBranch(ctx context.Context, b *Branch) (*lineage.Context, error) {
	head, err := c.position(ctx, b.HeadMessageID)
	if err != nil {
		return nil, err
	}
	b.CreatedAt = moment(b.CreatedAt).UnixMilli()
	made, err := c.thread.CreateBranch(ctx, b.Name, lineage.BranchOptions{
		At: head, Empty: head.IsZero(), Switch: b.IsActive, SourceID: b.ID, CreatedAt: moment(b.CreatedAt),
	})
	if errors.Is(err, ErrExists) {
		taken := &Error{Subject: SubjectBranch, ID: b.Name, ChatID: b.ChatID, Err: ErrExists}
		if subject := new(lineage.SubjectError); errors.As(err, &subject) && subject.ID == b.ID {
			taken.ID = b.ID
		}
		err = taken
	}
	if err != nil {
		return nil, err
	}
	b.ID, b.IsActive = cmp.Or(b.ID, made.ID().String()), b.IsActive || c.t.Active.IsZero()
	return made, nil
}

// CreateBranch implements Store.
func (s *onStore) CreateBranch(ctx context.Context, b Branch) (made Branch, err error) {
	if err := b.Check(); err != nil {
		return Branch{}, err
	}
	err = s.change(ctx, b.ChatID, func(c *openChat) error {
		made = b
		_, err := c.newBranch(ctx, &made)
		return err
	})
	return made, err
}

// Branch returns a branch of the thread.
func (r *ThreadReader) Branch(ctx context.Context, b *structure.Branch) (Branch, error) {
	branch, _, err := r.branchAt(ctx, b)
	return branch, err
}

// branchAt returns the current state of a branch, and its head.
func (r *ThreadReader) branchAt(ctx context.Context, b *structure.Branch) (Branch, structure.SpanRef, error) {
	c, err := r.from.Context(ctx, b.Context)
	if err != nil {
		return Branch{}, structure.SpanRef{}, err
	}
	head, err := r.IDAt(ctx, c.Tip)
	return Branch{
		ID: branchID(b), ChatID: IDOfThread(r.thread), Name: b.Name, HeadMessageID: head,
		IsActive: c.ID == r.thread.Active, CreatedAt: b.CreatedAt.UnixMilli(),
	}, c.Tip, err
}

// Branch implements Store.
func (s *onStore) Branch(ctx context.Context, chatID, name string) (*Branch, error) {
	t, err := s.thread(ctx, chatID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	b, err := s.from.Branch(ctx, t.ID, name)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	return orNone(s.reading(t).Branch(ctx, b))
}

// ActiveBranch implements Store.
func (s *onStore) ActiveBranch(ctx context.Context, chatID string) (*Branch, error) {
	t, err := s.thread(ctx, chatID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	b, err := backend.BranchOf(ctx, s.from, t.ID, t.Active)
	if err != nil || b == nil {
		return nil, err
	}
	return orNone(s.reading(t).Branch(ctx, b))
}

// SetActiveBranch implements Store.
func (s *onStore) SetActiveBranch(ctx context.Context, chatID, branchID string) error {
	return s.change(ctx, chatID, func(c *openChat) error {
		b, _, err := c.branch(ctx, c.t, branchID)
		if err != nil {
			return err
		}
		return c.thread.Switch(ctx, b.Name)
	})
}

// UpdateBranchHead implements Store. The reflog records moves other than forward.
func (s *onStore) UpdateBranchHead(ctx context.Context, chatID, branchID string, head Ref) error {
	return s.moveHead(ctx, chatID, branchID, head, false)
}

// MoveAlong is UpdateBranchHead of On(store) for programs that added messages after a head that may have moved
// since. It only moves forwards: the new head follows the present one, or a message that replaced it (see Replace), or
// is that message. Otherwise the branch would lose what another program added: that is a HeadError, whose Expected is
// the last message that both histories share.
func MoveAlong(ctx context.Context, store *lineage.Store, chatID, branchID string, head Ref) error {
	s := latest(store)
	return s.moveHead(ctx, chatID, branchID, head, true)
}

func (s *state) moveHead(ctx context.Context, chatID, branchID string, head Ref, along bool) error {
	return s.change(ctx, chatID, func(c *openChat) error {
		_, current, err := c.branch(ctx, c.t, branchID)
		if err != nil {
			return err
		}
		to, err := c.position(ctx, head)
		if err != nil || to == current.Tip {
			return err
		}
		if along {
			if err := c.along(ctx, branchID, current.Tip, to); err != nil {
				return err
			}
		}
		if err := c.move(ctx, current, to, "update branch head"); err != nil {
			return err
		}
		return c.touch(ctx)
	})
}

// along returns a HeadError unless the new head follows the old one, or is a later version of it, or follows such a
// version.
func (c *openChat) along(ctx context.Context, branchID string, tip, to structure.SpanRef) error {
	common, err := structure.CommonAncestor(tip, to, c.runs(ctx))
	if err != nil || common == tip {
		return err
	}
	if common != to {
		replaced, err := c.replaced(ctx, common, tip, to)
		if replaced || err != nil {
			return err
		}
	}
	r, e := c.reading(c.t), &HeadError{BranchID: branchID}
	if e.Expected, err = r.IDAt(ctx, common); err == nil {
		e.Actual, err = r.IDAt(ctx, tip)
	}
	return cmp.Or[error](err, e)
}

// replaced reports whether the message on the way to another span is a later version of the tip. Both are directly
// after their common ancestor.
func (c *openChat) replaced(ctx context.Context, common, tip, to structure.SpanRef) (bool, error) {
	after, err := c.store.Position(ctx, common)
	if err != nil {
		return false, err
	}
	length, err := c.store.Position(ctx, tip)
	if err != nil || length != after+1 {
		return false, err
	}
	next, err := structure.At(to, after+1, c.runs(ctx))
	if err != nil {
		return false, err
	}
	var ids [2]string
	var versions [2]uint64
	for i, at := range []structure.SpanRef{tip, next} {
		step, err := c.step(ctx, at, backend.PathOptions{})
		if err != nil {
			return false, err
		}
		ids[i], versions[i] = sourceOf(step.Span.Usages)
	}
	return ids[0] != "" && ids[0] == ids[1] && versions[0] < versions[1], nil
}

// move points a branch to a span. Forward moves are not recorded.
func (c *openChat) move(ctx context.Context, branch *backend.Context, to structure.SpanRef, reason string) error {
	if to == branch.Tip {
		return nil
	}
	forward, err := structure.IsAncestor(branch.Tip, to, c.runs(ctx))
	if err != nil {
		return err
	}
	_, err = write.Of(c.store).Make(ctx, func(b *write.Batch, _ write.Try) error {
		b.Expect(branch.ID, branch.Tip)
		if forward {
			b.Point(branch.ID, to)
		} else {
			b.Move(branch.ID, branch.Tip, to, reason)
		}
		return nil
	})
	return err
}

// ListBranches implements Store.
func (s *onStore) ListBranches(ctx context.Context, chatID string) ([]BranchInfo, error) {
	t, err := s.thread(ctx, chatID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	r := s.reading(t)
	branches, err := backend.BranchesByCreation(ctx, s.from, t.ID)
	if err != nil {
		return nil, err
	}
	var infos []BranchInfo
	for _, b := range branches {
		branch, tip, err := r.branchAt(ctx, b)
		if isNotFound(err) {
			continue // deleted in the meantime
		}
		if err != nil {
			return nil, err
		}
		length, err := s.store.Position(ctx, tip)
		if err != nil {
			return nil, err
		}
		infos = append(infos, BranchInfo{Branch: branch, MessageCount: int(length)})
	}
	return infos, nil
}

// Summaries implements Store.
func (s *onStore) Summaries(ctx context.Context, chatID, branchID string) ([]Summary, error) {
	t, err := s.thread(ctx, chatID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	_, c, err := s.branch(ctx, t, branchID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	opened, err := s.store.Context(ctx, c.ID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	found, err := opened.EffectiveSummaries(ctx)
	if err != nil {
		return nil, err
	}
	var summaries []Summary
	for _, f := range found {
		summaries = append(summaries, Summary{First: int(f.First), Last: int(f.Last), Level: int(f.Level), Text: f.Text})
	}
	return summaries, nil
}

// BranchNames implements Store.
func (s *onStore) BranchNames(ctx context.Context, chatID, prefix string, limit int) ([]string, error) {
	t, err := s.thread(ctx, chatID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	return backend.BranchNames(ctx, s.from, t.ID, prefix, limit)
}

// TakenBranchNames implements Store.
func (s *onStore) TakenBranchNames(ctx context.Context, chatID string, names []string) (taken []string, err error) {
	t, err := s.thread(ctx, chatID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	for _, name := range names {
		_, err := s.from.Branch(ctx, t.ID, name)
		if err == nil {
			taken = append(taken, name)
		} else if !isNotFound(err) {
			return nil, err
		}
	}
	return taken, nil
}
