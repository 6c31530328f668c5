-- Of each message, the version that is known: other programs may overwrite messages.
-- The lengths of chains are not kept, as they may change chains, too. What was known
-- is made known again when it is needed.
DROP TABLE [lineage_messages];
CREATE TABLE [lineage_messages] (
  [messageId] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
  [chatId] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL,
  [version] NVARCHAR(64) COLLATE Latin1_General_BIN2 NOT NULL,
  [terms] NVARCHAR(MAX) COLLATE Latin1_General_BIN2 NOT NULL,
  [card] VARBINARY(MAX) NOT NULL
);
CREATE INDEX [lineage_messages_chat] ON [lineage_messages] ([chatId]);
