package elsewhere_test

import (
	"os"
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
)

func TestMain(m *testing.M) {
	campaign.Checks(6) // each opens databases
	os.Exit(m.Run())
}
