package search

// format is the version of the tables and their content. An index of an older version is rebuilt.
const format = 8

// metaColumns are the number of steps, the highest number of a text, and the model of the vectors.
const metaColumns = `, spans INTEGER NOT NULL DEFAULT 0, texts INTEGER NOT NULL DEFAULT 0, model TEXT NOT NULL DEFAULT ''`

// schema creates the tables.
//
// A text is in "terms" under its number. Its id is a textID: the content id and the reading.
// "usages" are the steps that use a text; a step is run and seq, and head is the first usage of the
// message in its step. Contexts with records beside messages see nothing. A summary is a run with one step.
// "vectors" are embeddings of texts by the model in "meta", and "pending" are texts that it has not embedded.
const schema = `
CREATE TABLE texts (id BLOB PRIMARY KEY, number INTEGER NOT NULL, words INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE erased (id BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE VIRTUAL TABLE terms USING fts5(words, content='', contentless_delete=1, tokenize='ascii');
CREATE VIRTUAL TABLE places USING fts5vocab(terms, instance);
CREATE TABLE roles (number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE (kind, name));
CREATE TABLE usages (
	text INTEGER NOT NULL, run INTEGER NOT NULL, seq INTEGER NOT NULL, head INTEGER NOT NULL, role INTEGER NOT NULL, words INTEGER NOT NULL,
	PRIMARY KEY (text, run, seq, head)
) WITHOUT ROWID;
CREATE TABLE vectors (text INTEGER PRIMARY KEY, id BLOB NOT NULL, vector BLOB NOT NULL);
CREATE TABLE pending (text INTEGER PRIMARY KEY, id BLOB NOT NULL);
`
