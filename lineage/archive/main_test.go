package archive

import (
	"os"
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
)

func TestMain(m *testing.M) {
	campaign.Checks(15)
	os.Exit(m.Run())
}
