-- How far a store has been brought here. There is one row: everything up to the
-- commit is here. Every transaction that brings something adds 1 to the version.
CREATE TABLE "lineage_projection" (
  "id" INTEGER NOT NULL PRIMARY KEY,
  "store_id" TEXT NOT NULL,
  "format" INTEGER NOT NULL,
  "lineage" INTEGER NOT NULL, -- whether content and structure are here, beside chats
  "commit_number" INTEGER NOT NULL,
  "commit_id" INTEGER NOT NULL, -- tells it from another commit with that number
  "seen_number" INTEGER NOT NULL, -- the commit or, while a newer state is written, the commit of that
  "seen_id" INTEGER NOT NULL,
  "version" INTEGER NOT NULL
);

-- What has been brought. A scope is a thread, or a context that is in none.
CREATE TABLE "lineage_scopes" (
  "scope" TEXT NOT NULL PRIMARY KEY,
  "chat_id" TEXT, -- of a thread
  "metadata" TEXT -- of that, as the store has it
);

-- Of each run that a scope sees, the last span that is here, and how many messages of the
-- run, from the first on, have ids of their own.
CREATE TABLE "lineage_reach" (
  "scope" TEXT NOT NULL,
  "run_id" TEXT NOT NULL,
  "last_seq" INTEGER NOT NULL,
  "own" INTEGER NOT NULL,
  PRIMARY KEY ("scope", "run_id")
);
CREATE INDEX "lineage_reach_run" ON "lineage_reach" ("run_id");

-- Where the contexts of a scope stood.
CREATE TABLE "lineage_pins" (
  "id" TEXT NOT NULL PRIMARY KEY,
  "scope" TEXT NOT NULL,
  "run_id" TEXT,
  "seq" INTEGER NOT NULL
);
CREATE INDEX "lineage_pins_scope" ON "lineage_pins" ("scope");

-- Content whose bytes were erased.
CREATE TABLE "lineage_erased" (
  "content_id" TEXT NOT NULL PRIMARY KEY
);

-- Threads, contexts that are in none, and the values of a user, an application or the store that cannot be held here, and why.
CREATE TABLE "lineage_left_out" (
  "scope" TEXT NOT NULL PRIMARY KEY,
  "reason" TEXT NOT NULL
);
