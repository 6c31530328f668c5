-- What this program keeps beside the documented tables of chats.

-- Deleting a message looks for what points to it.

CREATE INDEX "lineage_branches_head" ON "branches" ("headMessageId");
CREATE INDEX "lineage_checkpoints_message" ON "checkpoints" ("messageId");

-- What is known of a message beyond its row: the length of its chain, where it is in
-- lineage_terms, and its card, which has what a search needs to rank it. If hasText is
-- 1, it has the same row in messages_fts. What other programs wrote is not here until
-- it is searched, and they put its text into a row of their choice.
CREATE TABLE "lineage_messages" (
  "row" INTEGER PRIMARY KEY,
  "messageId" TEXT NOT NULL UNIQUE,
  "chatId" TEXT NOT NULL,
  "depth" INTEGER NOT NULL,
  "hasText" INTEGER NOT NULL,
  "card" BLOB NOT NULL,
  FOREIGN KEY ("messageId") REFERENCES "messages" ("id") ON DELETE CASCADE
);
CREATE INDEX "lineage_messages_chat" ON "lineage_messages" ("chatId");

-- How many messages a chat has, and how many of them are in lineage_messages: where
-- they differ, other programs wrote. A search need not count them.
CREATE TABLE "lineage_chats" (
  "chatId" TEXT NOT NULL PRIMARY KEY,
  "messages" INTEGER NOT NULL,
  "known" INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "lineage_chats" SELECT "chatId", COUNT(*), 0 FROM "messages" GROUP BY "chatId";

-- A message that was replaced, or deleted without foreign keys, may still be known.
CREATE TRIGGER "lineage_chats_added" AFTER INSERT ON "messages"
BEGIN
  DELETE FROM "lineage_messages" WHERE "messageId" = NEW."id";
  INSERT INTO "lineage_chats" VALUES (NEW."chatId", 1, 0) ON CONFLICT ("chatId") DO UPDATE SET "messages" = "messages" + 1;
END;
CREATE TRIGGER "lineage_chats_removed" AFTER DELETE ON "messages"
BEGIN
  UPDATE "lineage_chats" SET "messages" = "messages" - 1 WHERE "chatId" = OLD."chatId";
END;
CREATE TRIGGER "lineage_chats_moved" AFTER UPDATE OF "chatId" ON "messages"
BEGIN
  UPDATE "lineage_chats" SET "messages" = "messages" - 1 WHERE "chatId" = OLD."chatId";
  INSERT INTO "lineage_chats" VALUES (NEW."chatId", 1, 0) ON CONFLICT ("chatId") DO UPDATE SET "messages" = "messages" + 1;
END;
CREATE TRIGGER "lineage_chats_known" AFTER INSERT ON "lineage_messages"
BEGIN
  UPDATE "lineage_chats" SET "known" = "known" + 1 WHERE "chatId" = NEW."chatId";
END;
CREATE TRIGGER "lineage_chats_forgotten" AFTER DELETE ON "lineage_messages"
BEGIN
  UPDATE "lineage_chats" SET "known" = "known" - 1 WHERE "chatId" = OLD."chatId";
END;
CREATE TRIGGER "lineage_chats_deleted" AFTER DELETE ON "chats"
BEGIN
  DELETE FROM "lineage_chats" WHERE "chatId" = OLD."id";
END;

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
CREATE TRIGGER "lineage_messages_changed" AFTER UPDATE OF "chatId", "name", "data", "createdAt" ON "messages"
BEGIN
  DELETE FROM "lineage_messages" WHERE "messageId" = NEW."id";
END;

CREATE TABLE "lineage_migrations" (
  "version" INTEGER PRIMARY KEY,
  "name" TEXT NOT NULL,
  "appliedAt" INTEGER NOT NULL
);
