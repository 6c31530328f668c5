// Package postgres is a storage engine on a PostgreSQL server, for stores that several machines
// use. See docs/postgres.md for how to run one.
//
// The server keeps a log of commits, and that log is the truth. Each process follows it with a
// replica, an embedded engine in memory or in a directory. The replica answers reads, after a check
// that the log has no more rows. Writes are judged in the replica and added to the log.
//
// Only plain SQL is used, and no session state, so a pooler may be in front of the server.
package postgres
