-- Of each message, the version that is known: other programs may overwrite messages.
-- It is the transaction that wrote the row. What was known is made known again when it
-- is needed. The length of its chain is known until another program changes a chain of
-- the chat: then the epoch of the chat is a higher one.
DROP TRIGGER "lineage_messages_changed" ON "messages";
DROP FUNCTION "lineage_forget_message"();
DROP TABLE "lineage_messages";
CREATE TABLE "lineage_messages" (
  "messageId" TEXT PRIMARY KEY REFERENCES "messages" ("id") ON DELETE CASCADE ON UPDATE CASCADE,
  "chatId" TEXT NOT NULL,
  "version" TEXT NOT NULL,
  "terms" TSVECTOR NOT NULL,
  "card" BYTEA NOT NULL,
  "depth" BIGINT, -- null where the chain does not begin with a message without a parent
  "epoch" BIGINT
);
CREATE INDEX "lineage_messages_chat" ON "lineage_messages" ("chatId");
CREATE INDEX "lineage_messages_terms" ON "lineage_messages" USING GIN ("terms");

-- How often chains of a chat were changed; no row for 0.
CREATE TABLE "lineage_chains" (
  "chatId" TEXT PRIMARY KEY,
  "epoch" BIGINT NOT NULL
);

-- The triggers fire only where a message gets another parent, id or chat, or is deleted. A program that
-- makes them fire needs no rights on what is ours, and nothing in its search path: they run as who made
-- them, and find the table in the schema of the messages. Where it is gone, they do nothing.
CREATE FUNCTION "lineage_chains_changed"() RETURNS TRIGGER AS $$
BEGIN
  EXECUTE format('INSERT INTO %I."lineage_chains" AS c SELECT DISTINCT i, 1 FROM unnest($1) AS i ORDER BY i ON CONFLICT ("chatId") DO UPDATE SET "epoch" = c."epoch" + 1', TG_TABLE_SCHEMA)
    USING ARRAY[OLD."chatId", NEW."chatId"];
  RETURN NULL;
EXCEPTION WHEN undefined_table THEN
  RETURN NULL;
END;
$$ LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
CREATE TRIGGER "lineage_chains_changed"
  AFTER UPDATE OF "parentId", "id", "chatId" ON "messages"
  FOR EACH ROW
  WHEN (OLD."parentId" IS DISTINCT FROM NEW."parentId" OR OLD."id" <> NEW."id" OR OLD."chatId" <> NEW."chatId")
  EXECUTE FUNCTION "lineage_chains_changed"();

-- Without the documented keys, a message can be deleted that others follow.
CREATE FUNCTION "lineage_chains_removed"() RETURNS TRIGGER AS $$
BEGIN
  EXECUTE format('INSERT INTO %1$I."lineage_chains" AS c SELECT DISTINCT m."chatId", 1 FROM "gone" g JOIN %1$I."messages" m ON m."parentId" = g."id" ORDER BY m."chatId" '
    'ON CONFLICT ("chatId") DO UPDATE SET "epoch" = c."epoch" + 1', TG_TABLE_SCHEMA);
  RETURN NULL;
EXCEPTION WHEN undefined_table THEN
  RETURN NULL;
END;
$$ LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
CREATE TRIGGER "lineage_chains_removed"
  AFTER DELETE ON "messages"
  REFERENCING OLD TABLE AS "gone"
  FOR EACH STATEMENT
  EXECUTE FUNCTION "lineage_chains_removed"();

-- Also where messages arrive by replication.
ALTER TABLE "messages" ENABLE ALWAYS TRIGGER "lineage_chains_changed";
ALTER TABLE "messages" ENABLE ALWAYS TRIGGER "lineage_chains_removed";
