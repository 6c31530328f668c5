package paths_test

import (
	"os"
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
)

func TestMain(m *testing.M) {
	campaign.Checks(8) // each opens stores and databases
	os.Exit(m.Run())
}
