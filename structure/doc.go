// Package structure defines what a store records about its content: the records of threads,
// runs, spans, contexts, branches and checkpoints, the commits that group them, their binary
// form, and pure functions over ancestry.
//
// Nothing here does I/O. Every change to a store is a [Commit], an atomic and
// numbered list of immutable [Record] values; everything a store can answer is
// a function of its commits in order.
package structure
