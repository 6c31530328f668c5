package api

import (
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// SearchQuery is what to search for.
type SearchQuery struct {
	Text string
	// Thread, when not zero, is the thread to search. Allows, when not nil, selects the threads that may be searched.
	Thread lineage.ThreadID
	User   string
	Limit  int
}

// UsageQuery is what to report.
type UsageQuery struct {
	By           []string
	Since, Until time.Time
}

// ImportQuery is an archive to import.
type ImportQuery struct{ _ *records.Imported }
