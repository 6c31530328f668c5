package chat

import "encoding/json"

// TypeMessage is the type of messages that people and models exchange.
const TypeMessage = "message"

// Message is a node in the graph of a chat.
type Message struct {
	ID     string `json:"id"`
	ChatID string `json:"chatId"`
	// ParentID is the message before this one, empty for a root.
	ParentID Ref `json:"parentId"`
	// Name is the role: "user", "assistant", …
	Name string `json:"name"`
	// Type is TypeMessage, another type, or empty.
	Type string `json:"type,omitempty"`
	// Data is any JSON. In a message with erased parts, "[erased]" replaces a text and null any other value. A
	// message that was erased as a whole is null.
	Data json.RawMessage `json:"data"`
	// CreatedAt is in Unix milliseconds; 0 in a new message is now.
	CreatedAt int64 `json:"createdAt"`
	// Origin states the author.
	Origin Origin `json:"origin,omitzero"`
}

// Origin states who wrote a message, and what it was derived from. All fields are optional. Without a user, the
// message belongs to the user of the chat.
type Origin struct {
	UserID string `json:"userId,omitempty"`
	// ModelID is the model that wrote the message.
	ModelID string `json:"modelId,omitempty"`
	// SourceID is the source of the message: a document, a URL.
	SourceID string `json:"sourceId,omitempty"`
	// DerivedFrom is what the message was edited or derived from: the id of a message in the chat, or the SHA-256 of
	// content. A store may return the content of the message instead of its id.
	DerivedFrom string `json:"derivedFrom,omitempty"`
}

// Same reports whether two messages with one id have the same content. They may differ in their time and origin, and
// in the layout of their JSON.
func (m Message) Same(other Message) bool {
	return m.ID == other.ID && m.ChatID == other.ChatID && m.ParentID == other.ParentID &&
		m.Name == other.Name && m.Type == other.Type && sameJSON(m.Data, other.Data)
}

// AgreesWith returns nil if known, the message with m's id in the chat, is the same, so that adding m changes
// nothing. Otherwise it returns the reason why m cannot be added.
func (m Message) AgreesWith(known Message) error {
	if !m.Same(known) {
		return &Error{Subject: SubjectMessage, ID: m.ID, ChatID: m.ChatID, Err: ErrExists, Detail: "with other content, and messages are immutable"}
	}
	return nil
}

// AppendRequest states what to append to a branch.
type AppendRequest struct {
	ChatID string
	// BranchID is the branch to extend. ExpectedHead is the head that it must have, empty for an empty branch.
	BranchID     string
	ExpectedHead Ref
	// NewBranch, when not nil, is created in the same change and extended instead of BranchID, from its head on. Its
	// ChatID may be omitted.
	NewBranch *Branch
	// Messages must not be empty. Their chat and parents follow from their order and may be omitted.
	Messages []Message
}
