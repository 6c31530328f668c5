package chat

import (
	"cmp"
	"context"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// branchContext returns the context of the branch with an id, nil if there is
// none.
func (s *onStore) branchContext(ctx context.Context, id string) (*backend.Context, error) {
	c, err := s.engine.Context(ctx, pointerID[structure.ContextID](SubjectBranch, id))
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if l := labelOf(c.Metadata); l.Branch != "" {
		if l.Branch != id {
			return nil, nil
		}
		return &c, nil
	}
	// It was not made here: a thread's first branch, or one made by other means.
	b, err := backend.BranchOf(ctx, s.engine, c.Thread, c.ID)
	if err != nil || b == nil {
		return nil, err
	}
	return &c, nil
}

// newBranch returns the records of a branch to be made, which must follow those of
// its head. An active one is made so in the thread, and so is one where none is active.
func (s *onStore) newBranch(ctx context.Context, t *structure.Thread, b *Branch) (*structure.Branch, *structure.Context, error) {
	head, err := s.position(ctx, t.ID, b.ChatID, b.HeadMessageID)
	if err != nil {
		return nil, nil, err
	}
	if b.ID == "" {
		b.ID = structure.NewID[structure.ContextID]().String()
	}
	if b.CreatedAt == 0 {
		b.CreatedAt = now().UnixMilli()
	}
	c := &structure.Context{
		ID: pointerID[structure.ContextID](SubjectBranch, b.ID), Thread: t.ID, Parent: t.Active, Base: head, Tip: head,
		Metadata: label{Branch: b.ID}.metadata(), CreatedAt: moment(b.CreatedAt),
	}
	if _, err := s.engine.Context(ctx, c.ID); err == nil {
		return nil, nil, &Error{Subject: SubjectBranch, ID: b.ID, Err: ErrExists}
	} else if !isNotFound(err) {
		return nil, nil, err
	}
	if _, err := s.engine.Branch(ctx, t.ID, b.Name); err == nil {
		return nil, nil, &Error{Subject: SubjectBranch, ID: b.Name, ChatID: b.ChatID, Err: ErrExists}
	} else if !isNotFound(err) {
		return nil, nil, err
	}
	if b.IsActive = b.IsActive || t.Active.IsZero(); b.IsActive {
		t.Active = c.ID
	}
	return &structure.Branch{Thread: t.ID, Name: b.Name, Context: c.ID, CreatedAt: c.CreatedAt}, c, nil
}

// CreateBranch implements Store.
func (s *onStore) CreateBranch(ctx context.Context, b Branch) (Branch, error) {
	if err := b.Check(); err != nil {
		return Branch{}, err
	}
	for {
		thread, err := s.mustThread(ctx, b.ChatID)
		if err != nil {
			return Branch{}, err
		}
		var made Branch
		err = s.change(ctx, thread, func(t *structure.Thread) ([]structure.Record, error) {
			made = b
			branch, c, err := s.newBranch(ctx, t, &made)
			return []structure.Record{c, branch}, err
		})
		if err == nil {
			return made, nil
		}
		if !isRace(err) {
			return Branch{}, err
		}
	}
}

// branchAt returns a branch as it is now.
func (s *onStore) branchAt(ctx context.Context, t *structure.Thread, b *structure.Branch) (Branch, structure.SpanRef, error) {
	return newReading(s.store, s.engine, t).branch(ctx, t, b)
}

func (r *reading) branch(ctx context.Context, t *structure.Thread, b *structure.Branch) (Branch, structure.SpanRef, error) {
	c, err := r.from.Context(ctx, b.Context)
	if err != nil {
		return Branch{}, structure.SpanRef{}, err
	}
	id := labelOf(c.Metadata).Branch
	if id == "" {
		id = c.ID.String()
	}
	head, err := r.idAt(ctx, c.Tip)
	return Branch{
		ID: id, ChatID: r.chatID, Name: b.Name, HeadMessageID: head,
		IsActive: c.ID == t.Active, CreatedAt: b.CreatedAt.UnixMilli(),
	}, c.Tip, err
}

// Branch implements Store.
func (s *onStore) Branch(ctx context.Context, chatID, name string) (*Branch, error) {
	return s.oneBranch(ctx, chatID, func(t *structure.Thread) (*structure.Branch, error) {
		if name == "" {
			return nil, nil
		}
		return s.engine.Branch(ctx, t.ID, name)
	})
}

// ActiveBranch implements Store.
func (s *onStore) ActiveBranch(ctx context.Context, chatID string) (*Branch, error) {
	return s.oneBranch(ctx, chatID, func(t *structure.Thread) (*structure.Branch, error) {
		return backend.BranchOf(ctx, s.engine, t.ID, t.Active)
	})
}

// oneBranch returns the branch that choose finds in a chat. Nothing of it may be
// there, or any more.
func (s *onStore) oneBranch(ctx context.Context, chatID string, choose func(*structure.Thread) (*structure.Branch, error)) (*Branch, error) {
	thread, err := s.thread(ctx, chatID)
	if err != nil || thread == nil {
		return nil, err
	}
	t, err := s.engine.Thread(ctx, thread.ID())
	if err == nil {
		var b *structure.Branch
		if b, err = choose(t); err == nil && b != nil {
			var found Branch
			if found, _, err = s.branchAt(ctx, t, b); err == nil {
				return &found, nil
			}
		}
	}
	if isNotFound(err) {
		err = nil
	}
	return nil, err
}

// SetActiveBranch implements Store.
func (s *onStore) SetActiveBranch(ctx context.Context, chatID, branchID string) error {
	thread, err := s.mustThread(ctx, chatID)
	if err != nil {
		return err
	}
	return s.change(ctx, thread, func(t *structure.Thread) ([]structure.Record, error) {
		c, err := s.branchContext(ctx, branchID)
		if err != nil {
			return nil, err
		}
		if c == nil {
			return nil, &Error{Subject: SubjectBranch, ID: branchID, ChatID: chatID, Err: ErrNotFound}
		}
		if c.Thread != t.ID {
			return nil, &Error{Subject: SubjectBranch, ID: branchID, ChatID: chatID, Err: ErrOtherChat}
		}
		t.Active = c.ID
		return nil, nil
	})
}

// UpdateBranchHead implements Store. A move other than forward is kept in the
// reflog.
func (s *onStore) UpdateBranchHead(ctx context.Context, branchID string, head Ref) error {
	for {
		c, err := s.branchContext(ctx, branchID)
		if err != nil {
			return err
		}
		if c == nil {
			return &Error{Subject: SubjectBranch, ID: branchID, Err: ErrNotFound}
		}
		t, err := s.engine.Thread(ctx, c.Thread)
		if err != nil {
			return err
		}
		to, err := s.position(ctx, t.ID, chatID(t.SourceID, t.ID), head)
		if err != nil || to == c.Tip {
			return err
		}
		records := []structure.Record{&structure.Tip{Context: c.ID, Span: to}}
		forward, err := structure.IsAncestor(c.Tip, to, s.runs(ctx))
		if err != nil {
			return err
		}
		if !forward {
			records = append(records, &structure.Reflog{Context: c.ID, From: c.Tip, To: to, Reason: "update branch head", At: now()})
		}
		o := asIs(t, backend.Expect{Context: c.ID, Tip: c.Tip})
		if records, err = s.touch(ctx, t, records, &o); err != nil {
			return err
		}
		err = s.apply(ctx, records, o)
		if !isTipMoved(err) && !isRace(err) {
			return err
		}
	}
}

// ListBranches implements Store.
func (s *onStore) ListBranches(ctx context.Context, chatID string) ([]BranchInfo, error) {
	thread, err := s.thread(ctx, chatID)
	if err != nil || thread == nil {
		return nil, err
	}
	t, err := s.engine.Thread(ctx, thread.ID())
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var infos []BranchInfo
	for b, err := range s.engine.Branches(ctx, t.ID, "", "") {
		if err != nil {
			return nil, err
		}
		branch, tip, err := s.branchAt(ctx, t, b)
		if isNotFound(err) {
			continue // deleted since
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
	slices.SortStableFunc(infos, func(a, b BranchInfo) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return infos, nil
}

// BranchNames implements Store.
func (s *onStore) BranchNames(ctx context.Context, chatID, prefix string, limit int) ([]string, error) {
	thread, err := s.thread(ctx, chatID)
	if err != nil || thread == nil {
		return nil, err
	}
	var names []string
	for b, err := range s.engine.Branches(ctx, thread.ID(), prefix, "") {
		if err != nil {
			return nil, err
		}
		if len(names) == limit {
			break
		}
		names = append(names, b.Name)
	}
	return names, nil
}
