package chat

import (
	"context"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/structure"
)

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

// BranchNamer is a Store that lists names of branches without looking at the others.
type BranchNamer interface {
	// BranchNames returns the names of a chat's branches that begin with a prefix, in their
	// order and no more of them than a limit: the prefix itself, if it is one, is the first.
	BranchNames(ctx context.Context, chatID, prefix string, limit int) ([]string, error)
}

// countNames returns how many names of a chat's branches begin with a prefix, but no more
// than a limit.
func countNames(ctx context.Context, s Store, chatID, prefix string, limit int) (int, error) {
	if b, ok := s.(BranchNamer); ok {
		names, err := b.BranchNames(ctx, chatID, prefix, limit)
		return len(names), err
	}
	infos, err := s.ListBranches(ctx, chatID)
	n := 0
	for i := range infos {
		if strings.HasPrefix(infos[i].Name, prefix) {
			n++
		}
	}
	return min(n, limit), err
}

// hasBranch reports whether a chat has a branch of a name.
func hasBranch(ctx context.Context, s Store, chatID, name string) (bool, error) {
	if b, ok := s.(BranchNamer); ok {
		names, err := b.BranchNames(ctx, chatID, name, 1)
		return slices.Contains(names, name), err
	}
	b, err := s.Branch(ctx, chatID, name)
	return b != nil, err
}

// NextBranchName returns an automatic name for a branch that is made from another one: see
// structure.VersionName. It is none of those that the caller knows to be taken.
func NextBranchName(ctx context.Context, s Store, chatID, current string, known []string) (string, error) {
	taken := func(name string) (bool, error) {
		if slices.Contains(known, name) {
			return true, nil
		}
		return hasBranch(ctx, s, chatID, name)
	}
	stem := structure.VersionStem(current)
	counted, err := countNames(ctx, s, chatID, stem+"-v", structure.MostVersionsCounted)
	if err != nil {
		return "", err
	}
	if is, err := hasBranch(ctx, s, chatID, stem); err != nil {
		return "", err
	} else if is {
		counted++
	}
	return structure.VersionName(stem, counted, taken)
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
