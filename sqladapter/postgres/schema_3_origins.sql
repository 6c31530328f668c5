-- Who said a message, where that is stated: the documented tables have no place for it.
CREATE TABLE "lineage_origins" (
  "messageId" TEXT PRIMARY KEY REFERENCES "messages" ("id") ON DELETE CASCADE ON UPDATE CASCADE,
  "userId" TEXT,
  "modelId" TEXT,
  "sourceId" TEXT,
  "derivedFrom" TEXT -- the id of a message, or the SHA-256 of content
);
