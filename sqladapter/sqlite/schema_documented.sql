-- The documented tables of chats. They are left alone where all of them are there.
--
-- A graph of messages with branches and checkpoints. Times are Unix milliseconds.

CREATE TABLE IF NOT EXISTS "chats" (
  "id" TEXT PRIMARY KEY,
  "userId" TEXT NOT NULL,
  "title" TEXT,
  "metadata" TEXT,
  "createdAt" INTEGER NOT NULL DEFAULT (strftime('%s', 'now') * 1000),
  "updatedAt" INTEGER NOT NULL DEFAULT (strftime('%s', 'now') * 1000)
);
CREATE INDEX IF NOT EXISTS "idx_chats_updatedAt" ON "chats" ("updatedAt");
CREATE INDEX IF NOT EXISTS "idx_chats_userId" ON "chats" ("userId");
CREATE INDEX IF NOT EXISTS "idx_chats_userId_updatedAt" ON "chats" ("userId", "updatedAt" DESC);

CREATE TABLE IF NOT EXISTS "messages" (
  "id" TEXT PRIMARY KEY,
  "chatId" TEXT NOT NULL,
  "parentId" TEXT,
  "name" TEXT NOT NULL,
  "type" TEXT,
  "data" TEXT NOT NULL,
  "createdAt" INTEGER NOT NULL,
  FOREIGN KEY ("chatId") REFERENCES "chats" ("id") ON DELETE CASCADE,
  FOREIGN KEY ("parentId") REFERENCES "messages" ("id")
);
CREATE INDEX IF NOT EXISTS "idx_messages_chatId" ON "messages" ("chatId");
CREATE INDEX IF NOT EXISTS "idx_messages_parentId" ON "messages" ("parentId");
CREATE INDEX IF NOT EXISTS "idx_messages_chatId_parentId" ON "messages" ("chatId", "parentId");

CREATE TABLE IF NOT EXISTS "branches" (
  "id" TEXT PRIMARY KEY,
  "chatId" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "headMessageId" TEXT,
  "isActive" INTEGER NOT NULL DEFAULT 0,
  "createdAt" INTEGER NOT NULL,
  FOREIGN KEY ("chatId") REFERENCES "chats" ("id") ON DELETE CASCADE,
  FOREIGN KEY ("headMessageId") REFERENCES "messages" ("id"),
  UNIQUE ("chatId", "name")
);
CREATE INDEX IF NOT EXISTS "idx_branches_chatId" ON "branches" ("chatId");
CREATE INDEX IF NOT EXISTS "idx_branches_chatId_isActive" ON "branches" ("chatId", "isActive");

CREATE TABLE IF NOT EXISTS "checkpoints" (
  "id" TEXT PRIMARY KEY,
  "chatId" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "messageId" TEXT NOT NULL,
  "createdAt" INTEGER NOT NULL,
  FOREIGN KEY ("chatId") REFERENCES "chats" ("id") ON DELETE CASCADE,
  FOREIGN KEY ("messageId") REFERENCES "messages" ("id"),
  UNIQUE ("chatId", "name")
);
CREATE INDEX IF NOT EXISTS "idx_checkpoints_chatId" ON "checkpoints" ("chatId");

CREATE VIRTUAL TABLE IF NOT EXISTS "messages_fts" USING fts5 (
  "messageId" UNINDEXED,
  "chatId" UNINDEXED,
  "name" UNINDEXED,
  "content",
  tokenize = 'porter unicode61'
);

-- A setting of the index: merging less often costs a search little and makes writing
-- cost less.
INSERT INTO "messages_fts" ("messages_fts", "rank") VALUES ('automerge', 16);
