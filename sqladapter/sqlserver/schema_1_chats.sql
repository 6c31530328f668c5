-- What this program keeps beside the documented tables of chats.

-- Listing chats and deleting messages look for these.

CREATE INDEX [lineage_chats_user] ON [chats] ([userId], [updatedAt]);
CREATE INDEX [lineage_branches_head] ON [branches] ([headMessageId]);
CREATE INDEX [lineage_checkpoints_message] ON [checkpoints] ([messageId]);

-- What is known of a message beyond its row: the length of its chain, its terms with
-- a space around each, and its card, which has what a search needs to rank it. What
-- other programs wrote is not here until it is searched. There is no foreign key: their columns may have another collation.
CREATE TABLE [lineage_messages] (
  [messageId] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
  [chatId] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL,
  [depth] BIGINT NOT NULL,
  [terms] NVARCHAR(MAX) COLLATE Latin1_General_BIN2 NOT NULL,
  [card] VARBINARY(MAX) NOT NULL
);
CREATE INDEX [lineage_messages_chat] ON [lineage_messages] ([chatId]);

CREATE TABLE [lineage_migrations] (
  [version] INT NOT NULL PRIMARY KEY,
  [name] NVARCHAR(255) NOT NULL,
  [appliedAt] BIGINT NOT NULL
);
