package searchindex

import (
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// The key of a context among the tips is its id. Ids of checkpoints may be equal in several threads.

// checkpointKey is the key of the tip of a checkpoint.
func checkpointKey(name derived.Name) string { return "k" + string(name.Thread[:]) + name.Name }

// summariesOf returns column "of" of the tips of the summaries of a context.
func summariesOf(id structure.ContextID) []byte { return append([]byte{'s'}, id[:]...) }

// contextOf returns the context of column "of".
func contextOf(of []byte) (id structure.ContextID, is bool) {
	if is = len(of) == 1+len(id) && of[0] == 's'; is {
		copy(id[:], of[1:])
	}
	return id, is
}
