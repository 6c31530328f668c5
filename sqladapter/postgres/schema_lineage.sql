-- Content and structure: what makes up the chats, each thing once however many chats
-- share it. A span (a step of a history) has usages of content blocks, in their order;
-- spans of one span set are alternatives to each other; a context is a view of the
-- history that ends at its tip. Times are Unix milliseconds.
--
-- content_blocks, contexts and message_usages have the documented columns first.

-- Everyone who said something or whose chat is here.
CREATE TABLE "users" (
  "id" TEXT NOT NULL PRIMARY KEY
);

-- A block with an empty content_type is known by its id only: it was erased, or is
-- not used here and something else was derived from it. Bodies of more than 64 MiB
-- are empty although their size is not 0. The user, model and source of the origin are
-- null: others may say the same, so they belong to each usage.
CREATE TABLE "content_blocks" (
  "id" TEXT NOT NULL PRIMARY KEY, -- SHA-256
  "content_type" TEXT NOT NULL,
  "body" BYTEA NOT NULL,
  "origin_kind" TEXT NOT NULL,
  "origin_user_id" TEXT REFERENCES "users" ("id"),
  "origin_model_id" TEXT,
  "origin_source_id" TEXT,
  "origin_parent_id" TEXT REFERENCES "content_blocks" ("id"),
  "created_at" BIGINT NOT NULL,
  "size" BIGINT NOT NULL,
  "erased" BIGINT NOT NULL -- 1 where the bytes were erased
);
CREATE INDEX "lineage_content_blocks_parent" ON "content_blocks" ("origin_parent_id");
CREATE INDEX "lineage_content_blocks_user" ON "content_blocks" ("origin_user_id");

CREATE TABLE "span_sets" (
  "id" TEXT NOT NULL PRIMARY KEY,
  "parent_span_id" TEXT,
  "alternatives" BIGINT NOT NULL, -- how many were asked for
  "created_at" BIGINT NOT NULL
);

-- A run is a straight line of spans; seq is the place in it, position that in the
-- whole history.
CREATE TABLE "spans" (
  "id" TEXT NOT NULL PRIMARY KEY,
  "parent_span_id" TEXT REFERENCES "spans" ("id"),
  "span_set_id" TEXT REFERENCES "span_sets" ("id"),
  "run_id" TEXT NOT NULL,
  "seq" BIGINT NOT NULL,
  "position" BIGINT NOT NULL
);
ALTER TABLE "span_sets" ADD FOREIGN KEY ("parent_span_id") REFERENCES "spans" ("id");
CREATE INDEX "lineage_spans_run" ON "spans" ("run_id", "seq");
CREATE INDEX "lineage_spans_parent" ON "spans" ("parent_span_id");
CREATE INDEX "lineage_spans_set" ON "spans" ("span_set_id");
CREATE INDEX "lineage_span_sets_parent" ON "span_sets" ("parent_span_id");

-- A row with remnant 1 is not a context. It is what others inherit from a context that was deleted:
-- its id, parent and overrides, with 0 in created_at. While a projector is running, it can also be a
-- context whose other columns come later.
CREATE TABLE "contexts" (
  "id" TEXT NOT NULL PRIMARY KEY,
  "parent_context_id" TEXT REFERENCES "contexts" ("id"),
  "tip_span_id" TEXT REFERENCES "spans" ("id"),
  "summary_text" TEXT,
  "summary_embedding" BYTEA,
  "system_prompt_override" TEXT,
  "model_override" TEXT,
  "created_at" BIGINT NOT NULL,
  "thread_id" TEXT,
  "chat_id" TEXT,
  "base_span_id" TEXT,
  "span_set_id" TEXT,
  "summary_content_id" TEXT,
  "overrides" TEXT,
  "metadata" TEXT,
  "branch_id" TEXT,
  "remnant" BIGINT NOT NULL
);
CREATE INDEX "lineage_contexts_parent" ON "contexts" ("parent_context_id");
CREATE INDEX "lineage_contexts_tip" ON "contexts" ("tip_span_id");
CREATE INDEX "lineage_contexts_thread" ON "contexts" ("thread_id");
CREATE INDEX "lineage_contexts_branch" ON "contexts" ("branch_id");
CREATE INDEX "lineage_contexts_summary" ON "contexts" ("summary_content_id");

-- An appearance of content: as a message, a part of the message before it ("name" is the
-- tool), a revision of a document ("name" is the document) or an asset ("name" is its file
-- name). The type and origin are those of this appearance, as far as it states them: without a
-- user it is of the chat's. A message of JSON is its content, its parts and a form, which is the
-- JSON around them.
CREATE TABLE "message_usages" (
  "id" TEXT NOT NULL PRIMARY KEY,
  "content_id" TEXT REFERENCES "content_blocks" ("id"),
  "role" TEXT NOT NULL,
  "created_at" BIGINT NOT NULL,
  "span_id" TEXT NOT NULL REFERENCES "spans" ("id"),
  "place" BIGINT NOT NULL,
  "kind" TEXT NOT NULL,
  "name" TEXT,
  "revision" BIGINT,
  "content_type" TEXT NOT NULL,
  "source_id" TEXT,
  "metadata" TEXT,
  "origin_kind" TEXT NOT NULL,
  "origin_user_id" TEXT,
  "origin_model_id" TEXT,
  "origin_source_id" TEXT,
  "origin_parent_id" TEXT,
  "piece" TEXT, -- what a message or a part says: text, reasoning, input, output, file, data
  "opaque" BIGINT NOT NULL, -- 1 where the content is a whole message of JSON
  "form_id" TEXT REFERENCES "content_blocks" ("id"),
  "extras" BYTEA, -- values that the form leaves out, each behind its length as a varint
  "lookup" BIGINT NOT NULL, -- n for the n-th version of the message with this source_id
  "metadata_id" TEXT REFERENCES "content_blocks" ("id") -- metadata that is content
);
CREATE INDEX "lineage_message_usages_content" ON "message_usages" ("content_id");
CREATE INDEX "lineage_message_usages_form" ON "message_usages" ("form_id");
CREATE INDEX "lineage_message_usages_metadata" ON "message_usages" ("metadata_id");
CREATE INDEX "lineage_message_usages_span" ON "message_usages" ("span_id");
CREATE INDEX "lineage_message_usages_user" ON "message_usages" ("origin_user_id");

-- Content that nothing may use any more: looked at before a run ends.
CREATE TABLE "lineage_orphans" (
  "content_id" TEXT NOT NULL PRIMARY KEY
);

-- Named values: the latest of each key and, of a context, the earlier ones that its forks
-- inherit. Neither value nor content_id is there where a context hides what it would inherit.
-- seen_span_id is where the context stood: forks that start behind it inherit the value. It may
-- be a span that is gone.
CREATE TABLE "lineage_values" (
  "id" TEXT NOT NULL PRIMARY KEY, -- made of the owner, the key and the commit
  "scope" TEXT NOT NULL, -- store, application, user, thread or context
  "owner" TEXT NOT NULL, -- the name, or the id; empty for the store
  "key" TEXT NOT NULL,
  "value" TEXT, -- JSON
  "content_id" TEXT, -- of a large value
  "latest" BIGINT NOT NULL, -- 0 for an earlier one
  "set_at" BIGINT NOT NULL,
  "commit_number" BIGINT NOT NULL,
  "seen_span_id" TEXT
);
CREATE INDEX "lineage_values_owner" ON "lineage_values" ("scope", "owner");
CREATE INDEX "lineage_values_content" ON "lineage_values" ("content_id");

-- Summaries: each stands for the spans after one, or from the first on where that is null, up to
-- another, as its context sees them. A summary of level 0 is of messages, one of a higher level of
-- the summaries that parts lists.
CREATE TABLE "lineage_summaries" (
  "id" TEXT NOT NULL PRIMARY KEY,
  "context_id" TEXT NOT NULL REFERENCES "contexts" ("id") ON DELETE CASCADE,
  "level" BIGINT NOT NULL,
  "after_span_id" TEXT,
  "to_span_id" TEXT,
  "parts" TEXT, -- JSON: a list of ids
  "content_id" TEXT NOT NULL,
  "summary_text" TEXT, -- null where it was erased
  "model" TEXT,
  "embedding" BYTEA, -- as it was given
  "created_at" BIGINT NOT NULL
);
CREATE INDEX "lineage_summaries_context" ON "lineage_summaries" ("context_id");
CREATE INDEX "lineage_summaries_content" ON "lineage_summaries" ("content_id");
