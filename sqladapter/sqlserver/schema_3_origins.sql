-- Who said a message, where that is stated: the documented tables have no place for it.
CREATE TABLE [lineage_origins] (
  [messageId] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
  [userId] NVARCHAR(MAX),
  [modelId] NVARCHAR(MAX),
  [sourceId] NVARCHAR(MAX),
  [derivedFrom] NVARCHAR(MAX) -- the id of a message, or the SHA-256 of content
);
