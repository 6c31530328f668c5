package chat

import "context"

// A store may offer more than Store. The functions below take the short way where
// it does, and go the long one through Store where it does not.

// MessageCounter is a Store that knows the length of a chain without reading it.
type MessageCounter interface {
	// CountMessages returns the length of the chain that ends at a message, 0 if
	// there is none.
	CountMessages(ctx context.Context, id string) (int, error)
}

// CountMessages returns the length of the chain that ends at a message, 0 if there
// is none.
func CountMessages(ctx context.Context, s Store, id string) (int, error) {
	if c, ok := s.(MessageCounter); ok {
		return c.CountMessages(ctx, id)
	}
	n := 0
	for _, err := range s.MessageChain(ctx, id) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// BranchNamer is a Store that lists the names of branches without their lengths.
type BranchNamer interface {
	// BranchNames returns the names of a chat's branches, in any order.
	BranchNames(ctx context.Context, chatID string) ([]string, error)
}

// BranchNames returns the names of a chat's branches, in any order.
func BranchNames(ctx context.Context, s Store, chatID string) ([]string, error) {
	if b, ok := s.(BranchNamer); ok {
		return b.BranchNames(ctx, chatID)
	}
	infos, err := s.ListBranches(ctx, chatID)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(infos))
	for i := range infos {
		names[i] = infos[i].Name
	}
	return names, nil
}

// ChatChanger is a Store that updates a chat by what it holds, in one step.
type ChatChanger interface {
	// ChangeChat updates a chat with what change makes of it. change may be called
	// again when the chat was changed meanwhile. An error of its own changes nothing.
	ChangeChat(ctx context.Context, id string, change func(Chat) (ChatUpdate, error)) (Chat, error)
}

// ChangeChat updates a chat with what change makes of it. With a Store that is no
// ChatChanger, what others change in between is overwritten.
func ChangeChat(ctx context.Context, s Store, id string, change func(Chat) (ChatUpdate, error)) (Chat, error) {
	if c, ok := s.(ChatChanger); ok {
		return c.ChangeChat(ctx, id, change)
	}
	c, err := s.Chat(ctx, id)
	if err != nil {
		return Chat{}, err
	}
	if c == nil {
		return Chat{}, noChat(id)
	}
	u, err := change(*c)
	if err != nil {
		return Chat{}, err
	}
	return s.UpdateChat(ctx, id, u)
}
