-- The documented tables of chats. They are left alone where all of them are there.
--
-- A graph of messages with branches and checkpoints. Times are Unix milliseconds.
-- Ids and names compare by their code units.

IF OBJECT_ID('chats', 'U') IS NULL
BEGIN
  CREATE TABLE [chats] (
    [id] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
    [userId] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL,
    [title] NVARCHAR(MAX),
    [metadata] NVARCHAR(MAX),
    [createdAt] BIGINT NOT NULL DEFAULT DATEDIFF_BIG(ms, '1970-01-01', GETUTCDATE()),
    [updatedAt] BIGINT NOT NULL DEFAULT DATEDIFF_BIG(ms, '1970-01-01', GETUTCDATE())
  );
END;
IF NOT EXISTS (SELECT * FROM sys.indexes WHERE name = 'idx_chats_updatedAt' AND object_id = OBJECT_ID('chats'))
  CREATE INDEX [idx_chats_updatedAt] ON [chats] ([updatedAt]);
IF NOT EXISTS (SELECT * FROM sys.indexes WHERE name = 'idx_chats_userId' AND object_id = OBJECT_ID('chats'))
  CREATE INDEX [idx_chats_userId] ON [chats] ([userId]);

IF OBJECT_ID('messages', 'U') IS NULL
BEGIN
  CREATE TABLE [messages] (
    [id] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
    [chatId] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL,
    [parentId] NVARCHAR(255) COLLATE Latin1_General_BIN2,
    [name] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL,
    [type] NVARCHAR(255) COLLATE Latin1_General_BIN2,
    [data] NVARCHAR(MAX) NOT NULL,
    [createdAt] BIGINT NOT NULL,
    FOREIGN KEY ([chatId]) REFERENCES [chats] ([id]) ON DELETE CASCADE,
    FOREIGN KEY ([parentId]) REFERENCES [messages] ([id])
  );
END;
IF NOT EXISTS (SELECT * FROM sys.indexes WHERE name = 'idx_messages_chatId' AND object_id = OBJECT_ID('messages'))
  CREATE INDEX [idx_messages_chatId] ON [messages] ([chatId]);
IF NOT EXISTS (SELECT * FROM sys.indexes WHERE name = 'idx_messages_parentId' AND object_id = OBJECT_ID('messages'))
  CREATE INDEX [idx_messages_parentId] ON [messages] ([parentId]);
IF NOT EXISTS (SELECT * FROM sys.indexes WHERE name = 'idx_messages_chatId_parentId' AND object_id = OBJECT_ID('messages'))
  CREATE INDEX [idx_messages_chatId_parentId] ON [messages] ([chatId], [parentId]);

IF OBJECT_ID('branches', 'U') IS NULL
BEGIN
  CREATE TABLE [branches] (
    [id] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
    [chatId] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL,
    [name] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL,
    [headMessageId] NVARCHAR(255) COLLATE Latin1_General_BIN2,
    [isActive] BIT NOT NULL DEFAULT 0,
    [createdAt] BIGINT NOT NULL,
    FOREIGN KEY ([chatId]) REFERENCES [chats] ([id]) ON DELETE CASCADE,
    FOREIGN KEY ([headMessageId]) REFERENCES [messages] ([id]),
    CONSTRAINT [UQ_branches_chatId_name] UNIQUE ([chatId], [name])
  );
END;
IF NOT EXISTS (SELECT * FROM sys.indexes WHERE name = 'idx_branches_chatId' AND object_id = OBJECT_ID('branches'))
  CREATE INDEX [idx_branches_chatId] ON [branches] ([chatId]);
IF NOT EXISTS (SELECT * FROM sys.indexes WHERE name = 'idx_branches_chatId_isActive' AND object_id = OBJECT_ID('branches'))
  CREATE INDEX [idx_branches_chatId_isActive] ON [branches] ([chatId], [isActive]);

IF OBJECT_ID('checkpoints', 'U') IS NULL
BEGIN
  CREATE TABLE [checkpoints] (
    [id] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
    [chatId] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL,
    [name] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL,
    [messageId] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL,
    [createdAt] BIGINT NOT NULL,
    FOREIGN KEY ([chatId]) REFERENCES [chats] ([id]) ON DELETE CASCADE,
    FOREIGN KEY ([messageId]) REFERENCES [messages] ([id]),
    CONSTRAINT [UQ_checkpoints_chatId_name] UNIQUE ([chatId], [name])
  );
END;
IF NOT EXISTS (SELECT * FROM sys.indexes WHERE name = 'idx_checkpoints_chatId' AND object_id = OBJECT_ID('checkpoints'))
  CREATE INDEX [idx_checkpoints_chatId] ON [checkpoints] ([chatId]);

IF OBJECT_ID('messages_fts', 'U') IS NULL
BEGIN
  CREATE TABLE [messages_fts] (
    [messageId] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL,
    [chatId] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL,
    [name] NVARCHAR(255) COLLATE Latin1_General_BIN2 NOT NULL,
    [content] NVARCHAR(MAX) NOT NULL,
    CONSTRAINT [PK_messages_fts] PRIMARY KEY ([messageId]),
    FOREIGN KEY ([messageId]) REFERENCES [messages] ([id]) ON DELETE CASCADE
  );
END;
IF NOT EXISTS (SELECT * FROM sys.indexes WHERE name = 'idx_messages_fts_chatId' AND object_id = OBJECT_ID('messages_fts'))
  CREATE INDEX [idx_messages_fts_chatId] ON [messages_fts] ([chatId]);
