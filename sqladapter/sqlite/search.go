package sqlite

import "github.com/lineage-store/lineage/sqladapter"

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
		Condition: sqladapter.MatchSyntax{Quote: `"`, Prefix: "*", And: " AND ", Or: " OR "}.Condition,
	}
}
