package chat

import "encoding/json"

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
}

// ChatUpdate says what to replace; what is nil stays.
type ChatUpdate struct {
	// UserID gives a chat without a user one. A chat keeps the user that it has: another
	// one is ErrOtherUser.
	UserID   *string         `json:"userId,omitempty"`
	Title    *string         `json:"title,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// ListOptions choose chats. The zero value chooses all.
type ListOptions struct {
	// UserID, when not empty, is the user whose chats are wanted.
	UserID string `json:"userId,omitempty"`
	// Metadata, when not nil, must match.
	Metadata *MetadataFilter `json:"metadata,omitempty"`
	// Limit is the most chats wanted; 0 is all. Offset is how many to leave out
	// first. Neither needs the other.
	Limit  int `json:"limit,omitempty"`
	Offset int `json:"offset,omitempty"`
}

// DeleteOptions qualify a deletion.
type DeleteOptions struct {
	// UserID, when not empty, leaves the chat alone unless it is this user's.
	UserID string `json:"userId,omitempty"`
}
