package chat

import "encoding/json"

// TypeMessage is the type of messages that people and models exchange.
const TypeMessage = "message"

// Message is a node of a chat's graph.
type Message struct {
	ID     string `json:"id"`
	ChatID string `json:"chatId"`
	// ParentID is the message that it follows, none for a root.
	ParentID Ref `json:"parentId"`
	// Name is the role: "user", "assistant", …
	Name string `json:"name"`
	// Type is TypeMessage, another type, or empty.
	Type string `json:"type,omitempty"`
	// Data is any JSON. In a message with erased parts, "[erased]" replaces a text and null
	// any other value. A message that was erased as a whole is null.
	Data json.RawMessage `json:"data"`
	// CreatedAt is in Unix milliseconds; 0 in a new message is now.
	CreatedAt int64 `json:"createdAt"`
	// Origin is who said it.
	Origin Origin `json:"origin,omitzero"`
}

// Origin states who said a message, and what it was derived from. A message need not state any
// of it: without a user it is of the chat's user.
type Origin struct {
	UserID string `json:"userId,omitempty"`
	// ModelID is the model that made it.
	ModelID string `json:"modelId,omitempty"`
	// SourceID is where it comes from: a document, a URL.
	SourceID string `json:"sourceId,omitempty"`
	// DerivedFrom is what it was edited or derived from: a message that is in the chat, by its
	// id, or content, by its SHA-256. A store may answer the content of the message in its place.
	DerivedFrom string `json:"derivedFrom,omitempty"`
}

// Same reports whether two messages of one id say the same: they differ in
// nothing but when and by whom they were made and in how their JSON is laid out.
func (m Message) Same(other Message) bool {
	return m.ID == other.ID && m.ChatID == other.ChatID && m.ParentID == other.ParentID &&
		m.Name == other.Name && m.Type == other.Type && sameJSON(m.Data, other.Data)
}

// AgreesWith returns nil if adding m changes nothing because known, the message
// of its chat that has its id, is the same. Otherwise it returns why m cannot be added.
func (m Message) AgreesWith(known Message) error {
	if !m.Same(known) {
		return &Error{Subject: SubjectMessage, ID: m.ID, ChatID: m.ChatID, Err: ErrExists, Detail: "with other content, and messages are immutable"}
	}
	return nil
}

// AppendRequest says what to append to a branch.
type AppendRequest struct {
	ChatID string
	// BranchID is the branch to extend, and ExpectedHead the head that it must have: none
	// while it is empty.
	BranchID     string
	ExpectedHead Ref
	// NewBranch, when not nil, is made by the same change and extended in place of
	// BranchID, from where it says its head is. Its ChatID may be left out.
	NewBranch *Branch
	// Messages are at least one. Their chat and parents follow from their place and
	// need not be given.
	Messages []Message
}
