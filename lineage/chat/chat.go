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
	// Metadata is JSON of the caller, nil if absent.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// CreatedAt is in Unix milliseconds; 0 in a new chat is now.
	CreatedAt int64 `json:"createdAt"`
	// UpdatedAt is the time when the chat or anything in it last changed. In a new chat it is ignored: the time is
	// now.
	UpdatedAt int64 `json:"updatedAt"`
}

// ChatInfo is a chat with counts of its contents.
type ChatInfo struct {
	Chat
	MessageCount int `json:"messageCount"`
	BranchCount  int `json:"branchCount"`
	// Page continues a listing after the chat: see ListOptions.After.
	Page string `json:"page,omitempty"`
}

// ChatUpdate has the fields to replace; nil fields stay as they are.
type ChatUpdate struct {
	// UserID sets the user of a chat without one. If the chat has another user, the error is ErrOtherUser.
	UserID   *string         `json:"userId,omitempty"`
	Title    *string         `json:"title,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// ListOptions select chats. The zero value selects all, last updated first. A store may use any of these to avoid
// reading other chats.
type ListOptions struct {
	// UserID, when not empty, selects the chats of a user.
	UserID string `json:"userId,omitempty"`
	// IDPrefix is a prefix of the id that the caller gave the chat. TitlePrefix is a prefix of the title, ignoring
	// case.
	IDPrefix    string `json:"idPrefix,omitempty"`
	TitlePrefix string `json:"titlePrefix,omitempty"`
	// Metadata must all match.
	Metadata []MetadataFilter `json:"metadata,omitempty"`
	// From and To limit the time of the last update: not before From, and before To, in Unix milliseconds. 0 is no
	// limit. The time of the last update is that of the last message, unless the chat was changed later.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
	// Oldest reverses the order: the least recently updated chat comes first.
	Oldest bool `json:"oldest,omitempty"`
	// After continues after a chat listed by the same store: it is ChatInfo.Page. A chat that is updated in the
	// meantime may be missing or appear twice.
	After string `json:"after,omitempty"`
	// Limit is the maximum number of chats; 0 is all. Offset is the number of chats to skip first. Skipping costs at
	// most as much as listing them, while After costs nothing. Each can be used without the other.
	Limit  int `json:"limit,omitempty"`
	Offset int `json:"offset,omitempty"`
}

// Passes reports whether a chat matches the filters of valid options.
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

// DeleteOptions restrict a deletion.
type DeleteOptions struct {
	// UserID, when not empty, deletes the chat only if it belongs to this user.
	UserID string `json:"userId,omitempty"`
}
