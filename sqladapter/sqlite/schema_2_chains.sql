-- Other programs may change chains: what is known of a chat has their lengths. It is
-- forgotten when a message gets another parent, id or chat, when one is added that
-- others follow already, and when one is deleted that others still follow.
CREATE TRIGGER "lineage_chains_changed" AFTER UPDATE OF "parentId", "id", "chatId" ON "messages"
WHEN OLD."parentId" IS NOT NEW."parentId" OR OLD."id" <> NEW."id" OR OLD."chatId" <> NEW."chatId"
BEGIN
  DELETE FROM "lineage_messages" WHERE "chatId" IN (OLD."chatId", NEW."chatId");
END;
CREATE TRIGGER "lineage_chains_added" AFTER INSERT ON "messages"
WHEN EXISTS (SELECT 1 FROM "messages" WHERE "parentId" = NEW."id")
BEGIN
  DELETE FROM "lineage_messages" WHERE "chatId" = NEW."chatId";
END;
CREATE TRIGGER "lineage_chains_removed" BEFORE DELETE ON "messages"
WHEN EXISTS (SELECT 1 FROM "lineage_messages" WHERE "messageId" = OLD."id") -- this program forgets what it deletes first
  AND EXISTS (SELECT 1 FROM "messages" WHERE "parentId" = OLD."id")
BEGIN
  DELETE FROM "lineage_messages" WHERE "chatId" = OLD."chatId";
END;

-- With foreign keys on, an id that is known could not be changed.
CREATE TRIGGER "lineage_messages_renamed" BEFORE UPDATE OF "id" ON "messages" WHEN OLD."id" <> NEW."id"
BEGIN
  DELETE FROM "lineage_messages" WHERE "messageId" = OLD."id";
END;
