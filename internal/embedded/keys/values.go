package keys

import (
	"encoding/binary"

	"github.com/lineage-store/lineage/structure"
)

// Keys of named values end with the inverted commit, so that the latest sorts first.
// Names and value keys contain no NUL, so a NUL terminates them without changing their
// order.

// Owner is the key prefix of the values of an owner.
func Owner(o structure.Owner) []byte {
	k := make([]byte, 0, 64)
	k = append(k, TableValue, byte(o.Scope))
	switch o.Scope {
	case structure.ApplicationScope, structure.UserScope:
		k = append(append(k, o.Name...), 0)
	case structure.ThreadScope:
		k = append(k, o.Thread[:]...)
	case structure.ContextScope:
		k = append(k, o.Context[:]...)
	}
	return k
}

// History is the key prefix of all records of a value.
func History(key structure.ValueKey) []byte {
	return append(append(Owner(key.Owner), key.Key...), 0)
}

// Value is the key of a value record in a commit.
func Value(key structure.ValueKey, commit uint64) []byte {
	return binary.BigEndian.AppendUint64(History(key), ^commit)
}

// ValueCommit returns the commit in a key.
func ValueCommit(k []byte) uint64 { return ^ReadUint64(k[len(k)-8:]) }
