package project

import "github.com/lineage-store/lineage/sqladapter"

var contextSQL = struct {
	placed, clear, orphan, ancestors sqladapter.Statement
}{
	placed: `SELECT "id", "parent_context_id", "remnant" FROM "contexts" WHERE "id" IN ({list})`,
	clear: `UPDATE "contexts" SET "tip_span_id" = NULL, "summary_text" = NULL, "summary_embedding" = NULL, "created_at" = 0, "thread_id" = NULL, "chat_id" = NULL, ` +
		`"base_span_id" = NULL, "span_set_id" = NULL, "summary_content_id" = NULL, "metadata" = NULL, "branch_id" = NULL, "remnant" = 1 WHERE "id" IN ({list})`,
	orphan: `UPDATE "contexts" SET "parent_context_id" = NULL WHERE "parent_context_id" IN ({list})`,
	ancestors: `WITH {recursive} "above" ("id") AS (SELECT "parent_context_id" FROM "contexts" WHERE "id" IN ({list}) ` +
		`UNION ALL SELECT c."parent_context_id" FROM "above" a JOIN "contexts" c ON c."id" = a."id") ` +
		`SELECT DISTINCT "id" FROM "above" WHERE "id" IS NOT NULL {unlimited}`,
}

var pruneSQL = struct {
	chatOf, removePins, removeReach, removeRun, removeScope, clearHeads, clearTips  sqladapter.Statement
	contextsOf, lastOf, runsOf, setsOf, orphans, clearSets, removeSet, removeUsages sqladapter.Statement
	removeSpans                                                                     sqladapter.Statement
}{
	chatOf:      `SELECT "chat_id" FROM "lineage_scopes" WHERE "scope" = ?`,
	removePins:  `DELETE FROM "lineage_pins" WHERE "scope" = ?`,
	removeReach: `DELETE FROM "lineage_reach" WHERE "scope" = ?`,
	removeRun:   `DELETE FROM "lineage_reach" WHERE "scope" = ? AND "run_id" = ?`,
	removeScope: `DELETE FROM "lineage_scopes" WHERE "scope" = ?`,
	clearHeads:  `UPDATE "branches" SET "headMessageId" = NULL WHERE "chatId" = ?`,
	clearTips:   `UPDATE "contexts" SET "tip_span_id" = NULL WHERE "id" IN (SELECT "id" FROM "lineage_pins" WHERE "scope" = ?)`,
	contextsOf:  `SELECT "id" FROM "lineage_pins" WHERE "scope" IN ({list})`,
	lastOf:      `SELECT COALESCE(MAX("last_seq"), 0) AS "last" FROM "lineage_reach" WHERE "run_id" = ?`,
	runsOf: `SELECT r."run_id" FROM "lineage_reach" r JOIN "spans" s ON s."run_id" = r."run_id" AND s."seq" = 1 ` +
		`WHERE r."scope" = ? ORDER BY s."position" DESC, r."run_id"`, // each before the one it starts from
	setsOf: `SELECT DISTINCT "span_set_id" FROM "spans" WHERE "run_id" = ? AND "seq" > ? AND "span_set_id" IS NOT NULL`,
	orphans: `INSERT INTO "lineage_orphans" ("content_id") SELECT n."id" FROM (` +
		`SELECT u."content_id" AS "id" FROM "message_usages" u JOIN "spans" s ON s."id" = u."span_id" WHERE s."run_id" = ? AND s."seq" > ? ` +
		`UNION SELECT u."form_id" FROM "message_usages" u JOIN "spans" s ON s."id" = u."span_id" WHERE s."run_id" = ? AND s."seq" > ? ` +
		`UNION SELECT u."metadata_id" FROM "message_usages" u JOIN "spans" s ON s."id" = u."span_id" WHERE s."run_id" = ? AND s."seq" > ?) n ` +
		`WHERE n."id" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "lineage_orphans" o WHERE o."content_id" = n."id")`,
	clearSets:    `UPDATE "spans" SET "span_set_id" = NULL WHERE "run_id" = ? AND "seq" > ? AND "span_set_id" IS NOT NULL`,
	removeSet:    `DELETE FROM "span_sets" WHERE "id" = ? AND NOT EXISTS (SELECT 1 FROM "spans" WHERE "spans"."span_set_id" = "span_sets"."id")`,
	removeUsages: `DELETE FROM "message_usages" WHERE "span_id" IN (SELECT "id" FROM "spans" WHERE "run_id" = ? AND "seq" > ?)`,
	removeSpans:  `DELETE FROM "spans" WHERE "run_id" = ? AND "seq" > ?`,
}

var reachSQL = struct {
	move, farthest sqladapter.Statement
}{
	move:     `UPDATE "lineage_reach" SET "last_seq" = ?, "own" = ? WHERE "scope" = ? AND "run_id" = ?`,
	farthest: `SELECT "run_id", MAX("last_seq") AS "last" FROM "lineage_reach" WHERE "run_id" IN ({list}) GROUP BY "run_id"`,
}

var valueSQL = struct {
	removeOfThread, removeOfContexts sqladapter.Statement
}{
	removeOfThread:   `DELETE FROM "lineage_values" WHERE "scope" = 'thread' AND "owner" = ?`,
	removeOfContexts: `DELETE FROM "lineage_values" WHERE "scope" = 'context' AND "owner" IN ({list})`,
}
