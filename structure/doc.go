// Package structure defines what a store records about its content: the records of threads,
// runs, spans, contexts, branches and checkpoints, the commits that group them, their binary
// form, and pure functions over ancestry.
//
// It does no I/O. Every change to a store is a [Commit], an atomic, numbered list of
// immutable [Record] values; the state of a store is a function of its commits in order.
// a function of its commits in order.
package structure
