package sqladapter

var compareSQL = struct {
	chats, messages, branches, checkpoints, texts, rowTexts    Statement
	values, pageValues, countValues                            Statement
	origins, pageOrigins, countOrigins                         Statement
	sets, spans, usages, contexts, blocks, users               Statement
	pageChats, pageMessages, pageBranches, pageCheckpoints     Statement
	pageSpans, pageUsages, pageContexts, pageBlocks, pageSets  Statement
	countChats, countMessages, countBranches, countCheckpoints Statement
	countSpans, countUsages, countContexts                     Statement
}{
	chats:       `SELECT "id", "userId", "title", "metadata", "createdAt", "updatedAt" FROM "chats" WHERE "id" IN ({list})`,
	messages:    `SELECT "id", "chatId", "parentId", "name", "type", "data", "createdAt" FROM "messages" WHERE "id" IN ({list})`,
	branches:    `SELECT "id", "chatId", "name", "headMessageId", "isActive", "createdAt" FROM "branches" WHERE "id" IN ({list})`,
	checkpoints: `SELECT "id", "chatId", "name", "messageId", "createdAt" FROM "checkpoints" WHERE "id" IN ({list})`,
	origins:     `SELECT "messageId", "userId", "modelId", "sourceId", "derivedFrom" FROM "lineage_origins" WHERE "messageId" IN ({list})`,
	texts:       `SELECT "messageId", "chatId", "name", "content" FROM "messages_fts" WHERE "messageId" IN ({list})`,
	rowTexts: `SELECT f."messageId", f."chatId", f."name", f."content" FROM "lineage_messages" k ` +
		`JOIN "messages_fts" f ON f."rowid" = k."row" WHERE k."messageId" IN ({list}) AND k."hasText" = 1`,
	sets:  `SELECT "id", "parent_span_id", "alternatives", "created_at" FROM "span_sets" WHERE "id" IN ({list})`,
	spans: `SELECT "id", "parent_span_id", "span_set_id", "run_id", "seq", "position" FROM "spans" WHERE "id" IN ({list})`,
	usages: `SELECT "id", "content_id", "role", "created_at", "span_id", "place", "kind", "name", "revision", "content_type", "source_id", ` +
		`"metadata", "origin_kind", "origin_user_id", "origin_model_id", "origin_source_id", "origin_parent_id" ` +
		`FROM "message_usages" WHERE "id" IN ({list})`,
	contexts: `SELECT "id", "parent_context_id", "tip_span_id", "summary_text", "summary_embedding", "system_prompt_override", ` +
		`"model_override", "created_at", "thread_id", "chat_id", "base_span_id", "span_set_id", "summary_content_id", "overrides", "metadata" ` +
		`FROM "contexts" WHERE "id" IN ({list})`,
	blocks: `SELECT "id", "content_type", "body", "origin_kind", "origin_user_id", "origin_model_id", "origin_source_id", ` +
		`"origin_parent_id", "created_at", "size" FROM "content_blocks" WHERE "id" IN ({list})`,
	values: `SELECT "id", "scope", "owner", "key", "value", "content_id", "latest", "set_at", "commit_number" FROM "lineage_values" ` +
		`WHERE "id" IN ({list})`,
	users: `SELECT "id" FROM "users" WHERE "id" IN ({list})`,

	pageChats:       `SELECT "id" FROM "chats" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageMessages:    `SELECT "id" FROM "messages" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageBranches:    `SELECT "id" FROM "branches" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageCheckpoints: `SELECT "id" FROM "checkpoints" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageOrigins:     `SELECT "messageId" FROM "lineage_origins" WHERE "messageId" > ? ORDER BY "messageId" {limit}`,
	pageValues:      `SELECT "id" FROM "lineage_values" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageSpans:       `SELECT "id" FROM "spans" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageUsages:      `SELECT "id" FROM "message_usages" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageContexts:    `SELECT "id" FROM "contexts" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageBlocks:      `SELECT "id" FROM "content_blocks" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageSets:        `SELECT "id" FROM "span_sets" WHERE "id" > ? ORDER BY "id" {limit}`,

	countChats:       `SELECT COUNT(*) AS "count" FROM "chats"`,
	countMessages:    `SELECT COUNT(*) AS "count" FROM "messages"`,
	countBranches:    `SELECT COUNT(*) AS "count" FROM "branches"`,
	countCheckpoints: `SELECT COUNT(*) AS "count" FROM "checkpoints"`,
	countOrigins:     `SELECT COUNT(*) AS "count" FROM "lineage_origins"`,
	countValues:      `SELECT COUNT(*) AS "count" FROM "lineage_values"`,
	countSpans:       `SELECT COUNT(*) AS "count" FROM "spans"`,
	countUsages:      `SELECT COUNT(*) AS "count" FROM "message_usages"`,
	countContexts:    `SELECT COUNT(*) AS "count" FROM "contexts"`,
}
