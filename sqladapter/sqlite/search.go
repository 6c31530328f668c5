package sqlite

import (
	"strings"

	"github.com/lineage-store/lineage/sqladapter"
)

// Search implements sqladapter.Dialect.
func (Dialect) Search() sqladapter.SearchSyntax {
	return sqladapter.SearchSyntax{
		Numbered: true,
		Known:    `INSERT INTO "lineage_messages" ("messageId", "chatId", "depth", "row", "hasText") VALUES {rows:5}`,
		Texts:    `INSERT INTO "messages_fts" ("rowid", "messageId", "chatId", "name", "content") VALUES {rows:5}`,
		Terms:    `INSERT OR REPLACE INTO "lineage_terms" ("rowid", "terms") VALUES {rows:2}`,
		Candidates: `SELECT k."messageId" FROM "lineage_terms" t JOIN "lineage_messages" k ON k."row" = t."rowid" ` +
			`WHERE t."lineage_terms" MATCH ? AND k."chatId" = ?`,
		Condition: func(chatID string, q sqladapter.Condition) ([]any, int) {
			return []any{expression(chatID, q), chatID}, 1
		},
	}
}

// expression writes a condition for FTS5. Terms have no quotes in them.
func expression(chatID string, q sqladapter.Condition) string {
	var b strings.Builder
	b.WriteString(`"` + sqladapter.ChatTerm(chatID) + `"`)
	if !q.IsAny() {
		b.WriteString(` AND ("` + sqladapter.ManyTerms + `" OR (`)
		write(&b, q)
		b.WriteString("))")
	}
	return b.String()
}

func write(b *strings.Builder, q sqladapter.Condition) {
	if len(q.Parts) == 0 {
		b.WriteString(`"` + q.Term + `"`)
		if q.Prefix {
			b.WriteString("*")
		}
		return
	}
	operator := " AND "
	if q.Or {
		operator = " OR "
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
