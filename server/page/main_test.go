package page_test

import (
	"os"
	"testing"
	"time"

	"github.com/lineage-store/lineage/server/page"
)

func TestMain(m *testing.M) {
	page.SetTimes(time.Hour, time.Hour) // the machine may be slow
	os.Exit(m.Run())
}
