package backend

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/structure"
)

// Value is a current or earlier named value.
type Value struct {
	structure.Value
	// Commit is the number of the commit that set it.
	Commit uint64
}

// ValueReader reads named values. For a deleted value it returns the record that deleted it:
// see structure.Value.Deleted. Values of deleted threads and contexts do not exist, and
// nothing is inherited: see [ContextValues].
type ValueReader interface {
	// Value returns a value. It is ErrNotFound if it was never set.
	Value(ctx context.Context, key structure.ValueKey) (Value, error)
	// Values yields the values of an owner whose keys start with a prefix and sort after a
	// given key, in the order of their keys. It does not read their history.
	Values(ctx context.Context, owner structure.Owner, prefix, after string) iter.Seq2[Value, error]
	// ValueHistory yields a value and its earlier versions, newest first. A Collector deletes
	// old replaced versions.
	ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[Value, error]
	// ValueOwners yields the names of the applications or users that have values and sort
	// after a given name, in order.
	ValueOwners(ctx context.Context, scope structure.Scope, after string) iter.Seq2[string, error]
}

// ExpectValue is the state that a value must have: the commit that set or deleted it, or 0 if
// it was never set.
type ExpectValue struct {
	Key    structure.ValueKey
	Commit uint64
}
