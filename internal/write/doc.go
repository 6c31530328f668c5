// Package write makes the records of a store and commits them. It is the only package
// that does: everything above an engine fills a [Batch] and gives it to a [Writer].
package write
