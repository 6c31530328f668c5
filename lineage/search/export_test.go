package search

import (
	"time"

	"github.com/lineage-store/lineage/internal/derivedfile"
)

// SetPatience sets for how long other processes that write are waited for. It returns what it was.
func SetPatience(d time.Duration) time.Duration {
	was := derivedfile.Patience
	derivedfile.Patience = d
	return was
}
