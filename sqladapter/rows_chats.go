package sqladapter

import (
	"database/sql"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

// Conversion of rows of the documented tables, in both directions. Columns are in the order of
// package tables.

// tableSQL has the statements of a table.
type tableSQL struct{ insert, rows, of, known, update, page, count, remove Statement }

// sqlOf has the statements of the tables of a projection.
var sqlOf = statementsOf(tables.All)

func statementsOf(list []*tables.Table) map[*tables.Table]tableSQL {
	all := make(map[*tables.Table]tableSQL, len(list))
	for _, t := range list {
		s := t.Statements()
		all[t] = tableSQL{
			Statement(s["insert"]), Statement(s["select"]), Statement(s["of"]), Statement(s["known"]), Statement(s["update"]), Statement(s["page"]), Statement(s["count"]),
			Statement(s["remove"]),
		}
	}
	return all
}

func scanChat(rows *Rows) (chat.Chat, error) {
	var c chat.Chat
	var title sql.NullString
	err := rows.Scan(&c.ID, &c.UserID, &title, &c.Metadata, &c.CreatedAt, &c.UpdatedAt)
	c.Title = title.String
	return c, err
}

func messageRows(messages []chat.Message) [][]any {
	rows := make([][]any, len(messages))
	for i, m := range messages {
		rows[i] = []any{m.ID, m.ChatID, optional(m.ParentID), m.Name, optional(m.Type), m.Data, m.CreatedAt}
	}
	return rows
}

func scanMessage(rows *Rows) (chat.Message, error) {
	var m chat.Message
	var parent, kind, user, model, source, derived sql.NullString
	err := rows.Scan(&m.ID, &m.ChatID, &parent, &m.Name, &kind, &m.Data, &m.CreatedAt, &user, &model, &source, &derived)
	m.ParentID, m.Type = chat.Ref(parent.String), kind.String
	m.Origin = chat.Origin{UserID: user.String, ModelID: model.String, SourceID: source.String, DerivedFrom: derived.String}
	return m, err
}

// originRows returns the rows for messages with an origin.
func originRows(messages []chat.Message) [][]any {
	var rows [][]any
	for _, m := range messages {
		if o := m.Origin; o != (chat.Origin{}) {
			rows = append(rows, []any{m.ID, optional(o.UserID), optional(o.ModelID), optional(o.SourceID), optional(o.DerivedFrom)})
		}
	}
	return rows
}

func branchRow(b *chat.Branch) []any {
	return []any{b.ID, b.ChatID, b.Name, optional(b.HeadMessageID), b.IsActive, b.CreatedAt}
}

func scanBranch(rows *Rows) (chat.Branch, error) {
	var b chat.Branch
	var head sql.NullString
	err := rows.Scan(&b.ID, &b.ChatID, &b.Name, &head, &b.IsActive, &b.CreatedAt)
	b.HeadMessageID = chat.Ref(head.String)
	return b, err
}

func checkpointRow(c *chat.Checkpoint) []any {
	return []any{c.ID, c.ChatID, c.Name, c.MessageID, c.CreatedAt}
}

func scanCheckpoint(rows *Rows) (chat.Checkpoint, error) {
	var c chat.Checkpoint
	err := rows.Scan(&c.ID, &c.ChatID, &c.Name, &c.MessageID, &c.CreatedAt)
	return c, err
}
