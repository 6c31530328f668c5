package chat

import (
	"context"

	"github.com/lineage-store/lineage/structure"
)

var (
	_ MessageCounter = (*onStore)(nil)
	_ BranchNamer    = (*onStore)(nil)
	_ ChatChanger    = (*onStore)(nil)
)

// CountMessages implements MessageCounter.
func (s *onStore) CountMessages(ctx context.Context, id string) (int, error) {
	p, ok, err := s.find(ctx, id)
	if err != nil || !ok {
		return 0, err
	}
	n, err := s.store.Position(ctx, p.ref)
	return int(n), err
}

// BranchNames implements BranchNamer.
func (s *onStore) BranchNames(ctx context.Context, chatID, prefix string, limit int) ([]string, error) {
	thread, err := s.thread(ctx, chatID)
	if err != nil || thread == nil {
		return nil, err
	}
	var names []string
	for b, err := range s.engine.BranchesNamed(ctx, thread.ID(), prefix) {
		if err != nil {
			return nil, err
		}
		if names = append(names, b.Name); len(names) == limit {
			break
		}
	}
	return names, nil
}

// ChangeChat implements ChatChanger.
func (s *onStore) ChangeChat(ctx context.Context, id string, change func(Chat) (ChatUpdate, error)) (Chat, error) {
	t, err := s.thread(ctx, id)
	if err != nil {
		return Chat{}, err
	}
	if t == nil {
		return Chat{}, noChat(id)
	}
	var refused error
	err = s.change(ctx, t.ID(), func(r *structure.Thread) ([]structure.Record, error) {
		u, err := change(Chat{
			ID: id, UserID: r.UserID, Title: r.Title, Metadata: r.Metadata,
			CreatedAt: r.CreatedAt.UnixMilli(), UpdatedAt: r.UpdatedAt.UnixMilli(),
		})
		if err == nil {
			err = u.Check()
		}
		if err != nil {
			refused = err
			return nil, err
		}
		if u.Title != nil {
			r.Title = *u.Title
		}
		if u.Metadata != nil {
			r.Metadata = u.Metadata
		}
		return nil, nil
	})
	if refused != nil {
		return Chat{}, refused
	}
	if isNotFound(err) {
		return Chat{}, noChat(id)
	}
	if err != nil {
		return Chat{}, err
	}
	return s.chat(ctx, t, id)
}
