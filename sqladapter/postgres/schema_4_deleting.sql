-- Chats that are being deleted, which takes several transactions where they are large. The program
-- that opens the database next goes on if they are not done.
CREATE TABLE "lineage_deleting" (
  "chatId" TEXT PRIMARY KEY,
  "since" BIGINT NOT NULL
);
