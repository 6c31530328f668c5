package postgres

import (
	"strings"

	"github.com/lineage-store/lineage/sqladapter"
)

// Search implements sqladapter.Dialect.
func (Dialect) Search() sqladapter.SearchSyntax {
	return sqladapter.SearchSyntax{
		Depths:        true,
		Known:         `INSERT INTO "lineage_messages" ("messageId", "chatId", "version", "terms", "card", "depth", "epoch") VALUES {rows:7t4}`,
		Texts:         `INSERT INTO "messages_fts" ("messageId", "chatId", "name", "content") VALUES {rows:4}`,
		Candidates:    `SELECT "card" FROM "lineage_messages" WHERE "terms" @@ CAST(? AS tsquery) AND "chatId" = ?`,
		AllCandidates: `SELECT "chatId", "card" FROM "lineage_messages" WHERE "terms" @@ CAST(? AS tsquery)`,
		Condition: func(chatID string, most bool, q sqladapter.Condition) ([]any, int) {
			switch {
			case chatID == "":
				return []any{conditional(q)}, 1
			case most && !q.IsAny():
				return []any{conditional(q), chatID}, 1
			}
			return []any{expression(chatID, q), chatID}, 1
		},
	}
}

// expression returns a condition on the messages of a chat as a tsquery. Terms contain no quotes.
func expression(chatID string, q sqladapter.Condition) string {
	ofChat := "'" + sqladapter.ChatTerm(chatID) + "'"
	if q.IsAny() {
		return ofChat
	}
	return ofChat + " & (" + conditional(q) + ")"
}

// conditional returns a condition on messages of any chat.
func conditional(q sqladapter.Condition) string {
	var b strings.Builder
	b.WriteString("'" + sqladapter.ManyTerms + "' | (")
	write(&b, q)
	b.WriteString(")")
	return b.String()
}

func write(b *strings.Builder, q sqladapter.Condition) {
	if len(q.Parts) == 0 {
		b.WriteString("'" + q.Term + "'")
		if q.Prefix {
			b.WriteString(":*")
		}
		return
	}
	operator := " & "
	if q.Or {
		operator = " | "
	}
	for i, part := range q.Parts {
		if i > 0 {
			b.WriteString(operator)
		}
		b.WriteString("(")
		write(b, part)
		b.WriteString(")")
	}
}
