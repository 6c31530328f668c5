package chat

import (
	"encoding/json"
	"strings"

	"github.com/lineage-store/lineage/lineage/backend"
)

// MainBranch is the name of the branch that a chat starts with.
const MainBranch = "main"

// Chat is a conversation.
type Chat struct {
	ID     string `json:"id"`
	UserID string `json:"userId"`
	Title  string `json:"title,omitempty"`
	// Metadata is JSON of the caller's, nil when absent.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// CreatedAt is in Unix milliseconds; 0 in a new chat is now.
	CreatedAt int64 `json:"createdAt"`
	// UpdatedAt is when the chat or anything in it last changed. A new chat's is
	// now, whatever it says.
	UpdatedAt int64 `json:"updatedAt"`
}

// ChatInfo is a chat with how much is in it.
type ChatInfo struct {
	Chat
	MessageCount int `json:"messageCount"`
	BranchCount  int `json:"branchCount"`
	// Page is where a listing continues after the chat: see ListOptions.After.
	Page string `json:"page,omitempty"`
}

// ChatUpdate has the fields to replace; nil fields stay as they are.
type ChatUpdate struct {
	// UserID gives a chat without a user one. A chat keeps the user that it has: another
	// one is ErrOtherUser.
	UserID   *string         `json:"userId,omitempty"`
	Title    *string         `json:"title,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// ListOptions choose chats. The zero value chooses all, the one updated last first. A store may look
// for chats by any of these without reading the others.
type ListOptions struct {
	// UserID, when not empty, is the user whose chats are wanted.
	UserID string `json:"userId,omitempty"`
	// IDPrefix is what the id begins with that the caller gave the chat, and TitlePrefix what
	// the title begins with, in upper or lower case.
	IDPrefix    string `json:"idPrefix,omitempty"`
	TitlePrefix string `json:"titlePrefix,omitempty"`
	// Metadata must all match.
	Metadata []MetadataFilter `json:"metadata,omitempty"`
	// From and To bound the time of the last update, which is that of the last message unless the
	// chat was changed later: in Unix milliseconds, not before From, and before To. 0 is no bound.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
	// Oldest reverses the order: the chat that was not updated for longest comes first.
	Oldest bool `json:"oldest,omitempty"`
	// After continues after a chat that the same store listed: it is ChatInfo.Page. A chat that
	// was updated meanwhile may be missing, or be there twice.
	After string `json:"after,omitempty"`
	// Limit is the most chats wanted; 0 is all. Offset is how many to leave out
	// first, which costs at most as much as to list them: After costs nothing. Neither needs the other.
	Limit  int `json:"limit,omitempty"`
	Offset int `json:"offset,omitempty"`
}

// Passes reports whether a chat passes the filters of valid options.
func (o *ListOptions) Passes(c Chat) bool {
	if o.UserID != "" && o.UserID != c.UserID || !strings.HasPrefix(c.ID, o.IDPrefix) ||
		!strings.HasPrefix(backend.FoldCase(c.Title), backend.FoldCase(o.TitlePrefix)) ||
		o.From != 0 && c.UpdatedAt < o.From || o.To != 0 && c.UpdatedAt >= o.To {
		return false
	}
	for _, f := range o.Metadata {
		if !f.Matches(c.Metadata) {
			return false
		}
	}
	return true
}

// DeleteOptions qualify a deletion.
type DeleteOptions struct {
	// UserID, when not empty, leaves the chat alone unless it is this user's.
	UserID string `json:"userId,omitempty"`
}
