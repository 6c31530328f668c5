package sqlite

import (
	"strings"

	"github.com/lineage-store/lineage/sqladapter"
)

// Search implements sqladapter.Dialect.
func (Dialect) Search() sqladapter.SearchSyntax {
	return sqladapter.SearchSyntax{
		Numbered: true,
		Counted:  true,
		Depths:   true,
		Known:    `INSERT INTO "lineage_messages" ("messageId", "chatId", "depth", "row", "hasText", "card") VALUES {rows:6}`,
		Texts:    `INSERT INTO "messages_fts" ("rowid", "messageId", "chatId", "name", "content") VALUES {rows:5}`,
		Terms:    `INSERT OR REPLACE INTO "lineage_terms" ("rowid", "terms") VALUES {rows:2}`,
		Forget: []sqladapter.Statement{
			`INSERT INTO "messages_fts" ("messages_fts") VALUES ('optimize')`,
			`INSERT INTO "lineage_terms" ("lineage_terms") VALUES ('optimize')`,
		},
		Compact: []sqladapter.Statement{`VACUUM`, `PRAGMA wal_checkpoint(TRUNCATE)`},
		Candidates: `SELECT k."card" FROM "lineage_terms" t JOIN "lineage_messages" k ON k."row" = t."rowid" ` +
			`WHERE t."lineage_terms" MATCH ? AND k."chatId" = ?`,
		AllCandidates: `SELECT k."chatId", k."card" FROM "lineage_terms" t JOIN "lineage_messages" k ON k."row" = t."rowid" ` +
			`WHERE t."lineage_terms" MATCH ?`,
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

// expression returns a condition on the messages of a chat in FTS5 syntax. Terms contain no quotes.
func expression(chatID string, q sqladapter.Condition) string {
	ofChat := `"` + sqladapter.ChatTerm(chatID) + `"`
	if q.IsAny() {
		return ofChat
	}
	return ofChat + " AND (" + conditional(q) + ")"
}

// conditional returns a condition on messages of any chat.
func conditional(q sqladapter.Condition) string {
	var b strings.Builder
	b.WriteString(`"` + sqladapter.ManyTerms + `" OR (`)
	write(&b, q)
	b.WriteString(")")
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
