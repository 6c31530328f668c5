// Package postgres is a storage engine on a PostgreSQL server, for stores that several machines
// use. See docs/postgres.md for how to run one.
//
// The server keeps a log of commits, and that log is the truth. Beside it are the entries that answer
// reads and by which commits are judged, those of package keys, in versions. One transaction writes a
// row of the log and its entries. A process holds bounded caches only.
//
// Only plain SQL is used, and no session state, so a pooler may be in front of the server.
package postgres
