package search_test

import (
	"os"
	"testing"
	"time"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/search"
)

func TestMain(m *testing.M) {
	campaign.Checks(8)                  // each opens stores
	search.SetPatience(2 * time.Minute) // another process may be slow
	os.Exit(m.Run())
}
