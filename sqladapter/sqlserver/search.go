package sqlserver

import "github.com/lineage-store/lineage/sqladapter"

// Search implements sqladapter.Dialect. It matches terms with LIKE, even if full-text search is
// installed: that would find messages with a delay, and tokenise differently from the other
// databases.
func (Dialect) Search() sqladapter.SearchSyntax {
	return sqladapter.SearchSyntax{
		Unlinked: true,
		Known:    `INSERT INTO "lineage_messages" ("messageId", "chatId", "version", "terms", "card") VALUES {rows:5t5}`,
		Texts:    `INSERT INTO "messages_fts" ("messageId", "chatId", "name", "content") VALUES {rows:4}`,
		Candidates: `SELECT "card" FROM "lineage_messages" WHERE "chatId" = ? AND ("terms" LIKE ? OR (1 = 1 {likes:terms})) ` +
			`AND EXISTS (SELECT 1 FROM "messages" m WHERE {same:m.id=lineage_messages.messageId})`,
		AllCandidates: `SELECT "chatId", "card" FROM "lineage_messages" WHERE ("terms" LIKE ? OR (1 = 1 {likes:terms})) ` +
			`AND EXISTS (SELECT 1 FROM "messages" m WHERE {same:m.id=lineage_messages.messageId})`,
		Condition: func(chatID string, _ bool, q sqladapter.Condition) ([]any, int) {
			patterns := required(q)
			args := []any{"% " + sqladapter.ManyTerms + " %"}
			if chatID != "" {
				args = append([]any{chatID}, args...)
			}
			for _, p := range patterns {
				args = append(args, p)
			}
			return args, len(patterns)
		},
	}
}

// required returns patterns that the terms of a message must match. Terms are letters and digits,
// so no escaping is needed.
func required(q sqladapter.Condition) []string {
	switch {
	case q.Or || q.IsAny():
		return nil
	case len(q.Parts) == 0 && q.Prefix:
		return []string{"% " + q.Term + "%"}
	case len(q.Parts) == 0:
		return []string{"% " + q.Term + " %"}
	}
	var patterns []string
	for _, part := range q.Parts {
		patterns = append(patterns, required(part)...)
	}
	return patterns
}
