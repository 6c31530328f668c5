// Package write creates the records of a store and commits them. It is the only package that does: all code
// above the engines fills a [Batch] and gives it to a [Writer].
package write
