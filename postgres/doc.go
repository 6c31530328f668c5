// Package postgres is a storage engine on a PostgreSQL server, for stores that several machines
// use. See docs/postgres.md for how to run one.
//
// The server keeps a log of commits, and that log is the truth. Beside it are the entries that answer
// reads and by which commits are judged, those of package keys, in versions. One transaction writes a
// row of the log and its entries. A process holds bounded caches only.
//
// Only plain SQL is used, and no session state, so a pooler may be in front of the server.
package postgres

// The files build on each other, without cycles. From the bottom:
//
//   - what is stored: row.go, keys.go, groups.go, unfolded.go, state.go
//   - statements: transaction.go, tail.go, fetch.go, read_state.go, write.go, flush.go
//   - the reader of a state, which reads and batches use: fetched.go, pages.go, logrows.go and additions.go are its parts;
//     state_reader.go, listings.go, scan.go and commits.go join them
//   - commits: judging.go and output.go make the row of a batch; lock.go, judge.go, attempt.go and batch.go write it
//   - reads: reads.go, snapshot.go, latest.go
//   - everything else that an engine does, each in its file
