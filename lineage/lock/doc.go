// Package lock keeps two programs from changing one session file at a time.
//
// The lock on a file is a second file beside it, <file>.lock, that says in JSON
// who holds it:
//
//	{"pid":4711,"timestamp":1700000000000,"hostname":"build-7", …}
//
// It is created exclusively, refreshed while its holder lives and removed on
// release. One that is left behind by a crash is stale and gives way:
//
//   - at once, when its process has ended, or when its pid now belongs to a
//     process that started at another time;
//   - when its stamp is older than [Options.Stale], if it is another machine's,
//     if the process cannot be told from a later one with the same pid, or if
//     the file cannot be read as a lock;
//   - when someone has waited for that long and seen no refresh, whatever the
//     clocks and the processes say.
//
// A holder that was stopped for so long that it was taken for dead learns of it
// by [ErrLost].
//
// A lock is exclusive: there is none for readers. The one exception is [With]
// under the context of a With on the same file, which runs with the lock that is
// held; functions that lock a file can so call each other.
//
// Programs that know only the three keys above can share files with this
// package: they see its locks, and it sees theirs.
//
// # Why only one wins
//
// Judging a lock file and replacing it are two steps, and between them another
// contender could do the same. So the lock file is created, refreshed, replaced
// and removed only inside the guard: an advisory lock of the operating system
// on <file>.lock.guard, which one process at a time can have and which the
// kernel takes back when that process ends, however it ends.
//
// A contender that has entered the guard judges again what it then finds. Of
// several that saw one stale lock, the first to enter replaces it before it
// leaves, and the others find a fresh lock. A refresh and a release inside the
// guard first compare the token in the file with their own, so neither touches
// the lock of a successor. A crash inside the guard leaves the stale lock, no
// lock or that of a dead process, and each of these gives way at once.
//
// The guard must exclude all that share the directory. A network file system
// whose advisory locks end at one machine leaves exclusive creation as the only
// protection between machines.
package lock
