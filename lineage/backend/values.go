package backend

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/structure"
)

// Value is a named value as it is now, or was.
type Value struct {
	structure.Value
	// Commit is the number of the commit that set it.
	Commit uint64
}

// ValueReader reads named values. What it returns of a value that was deleted is the record
// that deleted it: see structure.Value.Deleted. A value is read as it was set, so one of a
// thread or context that was deleted is not there, and nothing is inherited: see
// [ContextValues].
type ValueReader interface {
	// Value returns a value. It is ErrNotFound if it was never set.
	Value(ctx context.Context, key structure.ValueKey) (Value, error)
	// Values yields the values of an owner whose keys begin with a prefix, in the order of
	// their keys, those behind a given key. It reads none of their history.
	Values(ctx context.Context, owner structure.Owner, prefix, after string) iter.Seq2[Value, error]
	// ValueHistory yields a value and what it was before, the newest first. A Collector takes
	// what is old and was replaced.
	ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[Value, error]
	// ValueOwners yields the names of the applications, or users, that have values, in order,
	// those behind a given name.
	ValueOwners(ctx context.Context, scope structure.Scope, after string) iter.Seq2[string, error]
}

// ExpectValue is the state that a value must have: the number of the commit that set or
// deleted it, 0 when it was never set.
type ExpectValue struct {
	Key    structure.ValueKey
	Commit uint64
}
