package postgres

import "github.com/lineage-store/lineage/sqladapter"

// Search implements sqladapter.Dialect.
func (Dialect) Search() sqladapter.SearchSyntax {
	return sqladapter.SearchSyntax{
		Depths:        true,
		Known:         `INSERT INTO "lineage_messages" ("messageId", "chatId", "version", "terms", "card", "depth", "epoch") VALUES {rows:7t4}`,
		Texts:         `INSERT INTO "messages_fts" ("messageId", "chatId", "name", "content") VALUES {rows:4}`,
		Candidates:    `SELECT "card" FROM "lineage_messages" WHERE "terms" @@ CAST(? AS tsquery) AND "chatId" = ?`,
		AllCandidates: `SELECT "chatId", "card" FROM "lineage_messages" WHERE "terms" @@ CAST(? AS tsquery)`,
		Condition:     sqladapter.MatchSyntax{Quote: "'", Prefix: ":*", And: " & ", Or: " | "}.Condition,
	}
}
