// Package chatrows reads and writes the rows of chats, in the transaction of its caller: messages with
// their origins and their place in the search index, branches, checkpoints. It checks ids, and deletes
// chats.
package chatrows

import (
	"database/sql"
	"encoding/json"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
)

// Conversions of values to rows and back. Columns are in the order of package tables.

// Optional returns text, or null if it is empty.
func Optional[T ~string](s T) any {
	if s == "" {
		return nil
	}
	return string(s)
}

// OptionalJSON returns JSON as a parameter, or null for nil.
func OptionalJSON(b json.RawMessage) any {
	if b == nil {
		return nil
	}
	return b
}

// ScanChat scans a row of chats.
func ScanChat(rows *sqladapter.Rows) (chat.Chat, error) {
	var c chat.Chat
	var title sql.NullString
	err := rows.Scan(&c.ID, &c.UserID, &title, &c.Metadata, &c.CreatedAt, &c.UpdatedAt)
	c.Title = title.String
	return c, err
}

// MessageRows returns the rows of messages.
func MessageRows(messages []chat.Message) [][]any {
	rows := make([][]any, len(messages))
	for i, m := range messages {
		rows[i] = []any{m.ID, m.ChatID, Optional(m.ParentID), m.Name, Optional(m.Type), m.Data, m.CreatedAt}
	}
	return rows
}

// ScanMessage scans a row of messages with its origin.
func ScanMessage(rows *sqladapter.Rows) (chat.Message, error) {
	var m chat.Message
	var parent, kind, user, model, source, derived sql.NullString
	err := rows.Scan(&m.ID, &m.ChatID, &parent, &m.Name, &kind, &m.Data, &m.CreatedAt, &user, &model, &source, &derived)
	m.ParentID, m.Type = chat.Ref(parent.String), kind.String
	m.Origin = chat.Origin{UserID: user.String, ModelID: model.String, SourceID: source.String, DerivedFrom: derived.String}
	return m, err
}

// OriginRows returns the rows for messages with an origin.
func OriginRows(messages []chat.Message) [][]any {
	var rows [][]any
	for _, m := range messages {
		if o := m.Origin; o != (chat.Origin{}) {
			rows = append(rows, []any{m.ID, Optional(o.UserID), Optional(o.ModelID), Optional(o.SourceID), Optional(o.DerivedFrom)})
		}
	}
	return rows
}

// BranchRow returns the row of a branch.
func BranchRow(b *chat.Branch) []any {
	return []any{b.ID, b.ChatID, b.Name, Optional(b.HeadMessageID), b.IsActive, b.CreatedAt}
}

// ScanBranch scans a row of branches.
func ScanBranch(rows *sqladapter.Rows) (chat.Branch, error) {
	var b chat.Branch
	var head sql.NullString
	err := rows.Scan(&b.ID, &b.ChatID, &b.Name, &head, &b.IsActive, &b.CreatedAt)
	b.HeadMessageID = chat.Ref(head.String)
	return b, err
}

// CheckpointRow returns the row of a checkpoint.
func CheckpointRow(c *chat.Checkpoint) []any {
	return []any{c.ID, c.ChatID, c.Name, c.MessageID, c.CreatedAt}
}

// ScanCheckpoint scans a row of checkpoints.
func ScanCheckpoint(rows *sqladapter.Rows) (chat.Checkpoint, error) {
	var c chat.Checkpoint
	err := rows.Scan(&c.ID, &c.ChatID, &c.Name, &c.MessageID, &c.CreatedAt)
	return c, err
}
