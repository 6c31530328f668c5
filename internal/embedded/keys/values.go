package keys

import (
	"encoding/binary"

	"github.com/lineage-store/lineage/structure"
)

// Keys of named values end with the commit, the latest first. Names and keys of values
// have no NUL, so one ends them and they sort as they should.

// Owner begins the keys of the values of an owner.
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

// History begins the keys of what was said of a value.
func History(key structure.ValueKey) []byte {
	return append(append(Owner(key.Owner), key.Key...), 0)
}

// Value is the key of what a commit said of a value.
func Value(key structure.ValueKey, commit uint64) []byte {
	return binary.BigEndian.AppendUint64(History(key), ^commit)
}

// ValueCommit returns the commit of a key of the table.
func ValueCommit(k []byte) uint64 { return ^ReadUint64(k[len(k)-8:]) }
