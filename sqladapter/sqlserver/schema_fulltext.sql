-- The documented full-text index, where full-text search is installed. It cannot be
-- made in a transaction. Whoever finds it made leaves it alone.

IF SERVERPROPERTY('IsFullTextInstalled') = 1
BEGIN
  IF NOT EXISTS (SELECT * FROM sys.fulltext_catalogs WHERE name = 'context_store_catalog')
    CREATE FULLTEXT CATALOG context_store_catalog AS DEFAULT;
  IF NOT EXISTS (SELECT * FROM sys.fulltext_indexes WHERE object_id = OBJECT_ID('messages_fts'))
  BEGIN
    CREATE FULLTEXT INDEX ON [messages_fts] ([content])
      KEY INDEX [PK_messages_fts]
      ON context_store_catalog
      WITH STOPLIST = SYSTEM;
  END;
END;
