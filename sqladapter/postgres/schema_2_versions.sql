-- Of each message, the version that is known: other programs may overwrite messages.
-- It is the transaction that wrote the row. There are no triggers and functions of
-- ours, which other programs would have to find and to have rights on. The lengths of
-- chains are not kept, as others may change chains, too. What was known is made known
-- again when it is needed.
DROP TRIGGER "lineage_messages_changed" ON "messages";
DROP FUNCTION "lineage_forget_message"();
DROP TABLE "lineage_messages";
CREATE TABLE "lineage_messages" (
  "messageId" TEXT PRIMARY KEY REFERENCES "messages" ("id") ON DELETE CASCADE ON UPDATE CASCADE,
  "chatId" TEXT NOT NULL,
  "version" TEXT NOT NULL,
  "terms" TSVECTOR NOT NULL,
  "card" BYTEA NOT NULL
);
CREATE INDEX "lineage_messages_chat" ON "lineage_messages" ("chatId");
CREATE INDEX "lineage_messages_terms" ON "lineage_messages" USING GIN ("terms");
