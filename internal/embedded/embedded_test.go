//test:long
//test:race

package embedded

import (
	"context"
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/vfs/memfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
)

// variant is a way to run the suite.
type variant struct {
	name    string
	options Options
	reopen  bool
}

func (v variant) conform(t *testing.T, run func(*testing.T, backendtest.Config)) {
	t.Run(v.name, func(t *testing.T) {
		t.Parallel()
		run(t, backendtest.Config{New: newStore(v.options), Reopen: v.reopen})
	})
}

// TestConformance runs under the race detector: what goes on while goroutines fold and roll, and what the suite does from
// many goroutines.
func TestConformance(t *testing.T) {
	campaign.Long(t)
	variant{"folding and rolling", Options{OverlayBytes: 1, SegmentSize: 1, Durability: backend.Normal}, false}.conform(t, backendtest.Run)
	variant{"default", Options{}, false}.conform(t, backendtest.RunConcurrent)
}

// In short runs TestPrefetch alone runs the suite.
//
//test:norace
func TestConformanceOfOptions(t *testing.T) {
	campaign.Long(t)
	variant{"default", Options{}, false}.conform(t, backendtest.RunSequential)
	variant{"reopened", Options{Durability: backend.Normal}, true}.conform(t, backendtest.Run)
	if campaign.Runs() { // each option is tested on disk too, and sharing and replication are tested in memory
		variant{"in memory", Options{InMemory: true}, false}.conform(t, backendtest.Run)
		variant{"in memory, rolling", Options{InMemory: true, OverlayBytes: 1, SegmentSize: 1, Durability: backend.Normal}, false}.conform(t, backendtest.Run)
		variant{"in memory, reopened", Options{InMemory: true, Durability: backend.Normal}, true}.conform(t, backendtest.Run)
	}
}

// newStore returns a function that creates directories for stores with the
// given options.
func newStore(o Options) func(t testing.TB) backendtest.OpenFunc {
	return func(t testing.TB) backendtest.OpenFunc {
		dir, o := "", o
		if o.InMemory {
			o.FS = memfs.New() // kept when the store is reopened
		} else {
			dir = t.TempDir()
		}
		return func(ctx context.Context) (backend.Engine, error) { return Open(ctx, dir, o) }
	}
}
