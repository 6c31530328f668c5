package pack

import (
	"os"
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
)

func TestMain(m *testing.M) {
	campaign.Checks(12) // each writes packs
	os.Exit(m.Run())
}
