// Package postgres is a storage engine on a PostgreSQL server, for stores that several machines
// use. See docs/postgres.md for how to run one.
//
// The server keeps a log of commits, and that log is the truth. Each process follows it into a
// replica, which is an embedded engine in memory or in a directory: reads are answered by the
// replica, after one look whether the log has more; writes are judged there and go to the log.
//
// Only plain SQL is used, and no state of a session, so that a pooler may stand before the
// server.
package postgres
