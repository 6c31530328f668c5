// Package lock prevents two programs from changing a session file at the same time.
//
// The lock of a file is a second file, <file>.lock, which names the holder in JSON:
//
//	{"pid":4711,"timestamp":1700000000000,"hostname":"build-7", …}
//
// It is created exclusively, refreshed by its holder and removed on release. A lock left behind by
// a crash is stale and can be replaced:
//
//   - at once, if its process has ended, or its pid now belongs to a process with
//     another start time;
//   - when its timestamp is older than [Options.Stale], if it is from another machine,
//     if the process cannot be distinguished from a later one with the same pid, or
//     if the file is not a valid lock;
//   - when a contender has waited for that time without seeing a refresh, whatever
//     clocks and processes indicate.
//
// A holder that was suspended and lost its lock gets [ErrLost].
//
// A lock is exclusive; there are no read locks. The one exception: [With] under the context of a
// With on the same file uses the lock already held, so that functions that lock a file can call
// each other.
//
// Programs that know only the three keys above can share files with this package: both respect each
// other's locks.
//
// # Why only one contender wins
//
// Judging a lock file and replacing it are two steps, and another contender could do the same in
// between. So the lock file is created, refreshed, replaced and removed only inside the guard: an
// advisory lock of the operating system on <file>.lock.guard, which one process at a time can hold
// and which the kernel releases when the process ends.
//
// A contender judges the lock again inside the guard. If several have seen a stale lock, the first
// one to enter replaces it, and the others find a fresh lock. Refresh and release first compare the
// token in the file with their own, so they never touch the lock of a successor. A crash inside the
// guard leaves the stale lock, no lock, or that of a dead process; each of these can be replaced at
// once.
//
// The guard must exclude all processes that share the directory. On a network file system with
// advisory locks that only work within a machine, exclusive creation is the only protection between
// machines.
package lock
