package api

import (
	"encoding/json"
	"time"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
)

// chatRecord is a chat in a list.
type chatRecord struct {
	// ID is the id that its creator chose, else that of the thread.
	ID       string          `json:"id"`
	User     string          `json:"user,omitempty"`
	Title    string          `json:"title,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Messages and Branches are numbers, of the messages on all branches. They are absent in a list by message or branch.
	Messages  *int      `json:"messages,omitempty"`
	Branches  *int      `json:"branches,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// RecordType implements records.Record.
func (*chatRecord) RecordType() string { return "chat" }

func at(millis int64) time.Time { return time.UnixMilli(millis).UTC() }

func ofChatRecord(c *chat.Chat) *chatRecord {
	return &chatRecord{
		ID: c.ID, User: c.UserID, Title: c.Title, Metadata: records.JSON(c.Metadata), CreatedAt: at(c.CreatedAt), UpdatedAt: at(c.UpdatedAt),
	}
}

// chatMessage is a message of a chat.
type chatMessage struct {
	ID     string  `json:"id"`
	Parent *string `json:"parent"`
	Role   string  `json:"role"`
	Kind   string  `json:"kind,omitempty"`
	// Data is any JSON, and null for a message that was erased.
	Data json.RawMessage `json:"data"`
	// Followed is set if it is the parent of another message. Only a message that is asked for by its id has it.
	Followed *bool `json:"followed,omitempty"`
	// Rank orders what a search found: the higher, the better. Snippet is where it matches, the words between <mark> and </mark>.
	Rank      *float64  `json:"rank,omitempty"`
	Snippet   string    `json:"snippet,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// RecordType implements records.Record.
func (*chatMessage) RecordType() string { return "chat_message" }

func ofChatMessage(m *chat.Message) *chatMessage {
	return &chatMessage{ID: m.ID, Parent: orNull(m.ParentID), Role: m.Name, Kind: m.Type, Data: m.Data, CreatedAt: at(m.CreatedAt)}
}

func orNull(r chat.Ref) *string {
	if r == "" {
		return nil
	}
	return (*string)(&r)
}

// chatBranch is a branch of a chat.
type chatBranch struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Head is its last message.
	Head   *string `json:"head"`
	Active bool    `json:"active"`
	// Length is how many messages lead to the head. Only the list of all has it.
	Length    *int      `json:"length,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// RecordType implements records.Record.
func (*chatBranch) RecordType() string { return "chat_branch" }

// chatCheckpoint is a checkpoint of a chat.
type chatCheckpoint struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Message   string    `json:"message"`
	CreatedAt time.Time `json:"created_at"`
}

// RecordType implements records.Record.
func (*chatCheckpoint) RecordType() string { return "chat_checkpoint" }

func ofChatCheckpoint(k *chat.Checkpoint) *chatCheckpoint {
	return &chatCheckpoint{ID: k.ID, Name: k.Name, Message: k.MessageID, CreatedAt: at(k.CreatedAt)}
}
