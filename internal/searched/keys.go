package searched

import "github.com/lineage-store/lineage/structure"

// Ids are chosen by whoever makes a commit: those of a run and of a summary may be equal, and so may those of summaries of
// several contexts. In an index, a summary is a run with one step. The key of that run differs from every id.

// OfSummary begins the key of a summary, and column "of" of its tip.
const OfSummary = 's'

// SummariesOf returns column "of" of the tips of the summaries of a context.
func SummariesOf(id structure.ContextID) []byte { return append([]byte{OfSummary}, id[:]...) }

// SummarizedIn returns the context of such a column.
func SummarizedIn(key []byte) (id structure.ContextID, ok bool) {
	if ok = len(key) == 1+len(id) && key[0] == OfSummary; ok {
		copy(id[:], key[1:])
	}
	return id, ok
}

// SummaryKey returns the key of a summary of a context.
func SummaryKey(context structure.ContextID, id structure.SummaryID) []byte {
	return append(SummariesOf(context), id[:]...)
}

// SummaryOf returns the context and the id of a summary from its key.
func SummaryOf(key []byte) (context structure.ContextID, id structure.SummaryID, ok bool) {
	if ok = len(key) == 1+len(context)+len(id) && key[0] == OfSummary; ok {
		copy(context[:], key[1:])
		copy(id[:], key[1+len(context):])
	}
	return context, id, ok
}
