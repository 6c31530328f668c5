-- What this program keeps beside the documented tables of chats.

-- Listing chats and deleting messages look for these.

CREATE INDEX "lineage_chats_user" ON "chats" ("userId", "updatedAt", "id");
CREATE INDEX "lineage_branches_head" ON "branches" ("headMessageId");
CREATE INDEX "lineage_checkpoints_message" ON "checkpoints" ("messageId");

-- What is known of a message beyond its row: the length of its chain; its terms,
-- with one that stands for its chat, so that a search costs what its chat holds and
-- not what the table holds; and its card, which has what a search needs to rank it.
-- What other programs wrote is not here until it is searched.
CREATE TABLE "lineage_messages" (
  "messageId" TEXT PRIMARY KEY REFERENCES "messages" ("id") ON DELETE CASCADE,
  "chatId" TEXT NOT NULL,
  "depth" BIGINT NOT NULL,
  "terms" TSVECTOR NOT NULL,
  "card" BYTEA NOT NULL
);
CREATE INDEX "lineage_messages_chat" ON "lineage_messages" ("chatId");
CREATE INDEX "lineage_messages_terms" ON "lineage_messages" USING GIN ("terms");

-- Another program that overwrites a message makes what is known of it wrong.
CREATE FUNCTION "lineage_forget_message"() RETURNS TRIGGER AS $$
BEGIN
  DELETE FROM "lineage_messages" WHERE "messageId" = NEW."id";
  RETURN NULL;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER "lineage_messages_changed"
  AFTER UPDATE OF "chatId", "name", "data", "createdAt" ON "messages"
  FOR EACH ROW
  EXECUTE FUNCTION "lineage_forget_message"();

CREATE TABLE "lineage_migrations" (
  "version" INTEGER PRIMARY KEY,
  "name" TEXT NOT NULL,
  "appliedAt" BIGINT NOT NULL
);
