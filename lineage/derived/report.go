package derived

import "github.com/lineage-store/lineage/lineage/backend"

// Report is the result of a run.
type Report struct {
	// From and To are the positions before and after.
	From, To backend.Cursor
	// Transactions is the number of transactions of this run.
	Transactions int
}
