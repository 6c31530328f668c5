package postgres

import (
	"strings"

	"github.com/lineage-store/lineage/sqladapter"
)

// Search implements sqladapter.Dialect.
func (Dialect) Search() sqladapter.SearchSyntax {
	return sqladapter.SearchSyntax{
		Known:      `INSERT INTO "lineage_messages" ("messageId", "chatId", "depth", "terms") VALUES {rows:4t4}`,
		Texts:      `INSERT INTO "messages_fts" ("messageId", "chatId", "name", "content") VALUES {rows:4}`,
		Candidates: `SELECT "messageId" FROM "lineage_messages" WHERE "terms" @@ CAST(? AS tsquery) AND "chatId" = ?`,
		Condition: func(chatID string, q sqladapter.Condition) ([]any, int) {
			return []any{expression(chatID, q), chatID}, 1
		},
	}
}

// expression writes a condition for tsquery. Terms have no quotes in them.
func expression(chatID string, q sqladapter.Condition) string {
	var b strings.Builder
	b.WriteString("'" + sqladapter.ChatTerm(chatID) + "'")
	if !q.IsAny() {
		b.WriteString(" & ('" + sqladapter.ManyTerms + "' | (")
		write(&b, q)
		b.WriteString("))")
	}
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
