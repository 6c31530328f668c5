package searched

import "github.com/lineage-store/lineage/structure"

// Ids are chosen by whoever makes a commit: those of a run and of a summary may be equal, and so may those of summaries of
// several contexts. A run with one step stands for a summary in an index, and has a key that no id is.

const ofSummary = 's'

// SummaryKey returns the key of a summary of a context.
func SummaryKey(of structure.ContextID, id structure.SummaryID) []byte {
	return append(append([]byte{ofSummary}, of[:]...), id[:]...)
}

// SummaryOf returns the context and the id of a summary from its key.
func SummaryOf(key []byte) (of structure.ContextID, id structure.SummaryID, is bool) {
	if is = len(key) == 1+len(of)+len(id) && key[0] == ofSummary; is {
		copy(of[:], key[1:])
		copy(id[:], key[1+len(of):])
	}
	return of, id, is
}
