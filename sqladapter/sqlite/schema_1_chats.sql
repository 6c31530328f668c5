-- What this program keeps beside the documented tables of chats.

-- Deleting a message looks for what points to it.

CREATE INDEX "lineage_branches_head" ON "branches" ("headMessageId");
CREATE INDEX "lineage_checkpoints_message" ON "checkpoints" ("messageId");

-- What is known of a message beyond its row: the length of its chain, and where it
-- is in lineage_terms. If hasText is 1, it has the same row in messages_fts. What
-- other programs wrote is not here until it is searched, and they put its text into
-- a row of their choice.
CREATE TABLE "lineage_messages" (
  "messageId" TEXT PRIMARY KEY,
  "chatId" TEXT NOT NULL,
  "depth" INTEGER NOT NULL,
  "row" INTEGER NOT NULL UNIQUE,
  "hasText" INTEGER NOT NULL,
  FOREIGN KEY ("messageId") REFERENCES "messages" ("id") ON DELETE CASCADE
);
CREATE INDEX "lineage_messages_chat" ON "lineage_messages" ("chatId");

-- The terms of each message, and one that stands for its chat, so that a search
-- costs what its chat holds and not what the table holds.
CREATE VIRTUAL TABLE "lineage_terms" USING fts5 (
  "terms",
  content = '',
  contentless_delete = 1,
  detail = none,
  tokenize = 'ascii'
);

-- As for messages_fts.
INSERT INTO "lineage_terms" ("lineage_terms", "rank") VALUES ('automerge', 16);

-- Another program that overwrites a message makes what is known of it wrong.
CREATE TRIGGER "lineage_messages_changed" AFTER UPDATE OF "data" ON "messages"
BEGIN
  DELETE FROM "lineage_messages" WHERE "messageId" = NEW."id";
END;

CREATE TABLE "lineage_migrations" (
  "version" INTEGER PRIMARY KEY,
  "name" TEXT NOT NULL,
  "appliedAt" INTEGER NOT NULL
);
