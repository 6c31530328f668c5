package embedded

import (
	"context"
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/vfs/memfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
)

func TestConformance(t *testing.T) {
	for _, variant := range []struct {
		name    string
		options Options
		reopen  bool
	}{
		{"default", Options{}, false},
		{"folding and rolling", Options{OverlayBytes: 1, SegmentSize: 1, Durability: backend.Normal}, false},
		{"reopened", Options{Durability: backend.Normal}, true},
		{"in memory", Options{InMemory: true}, false},
		{"in memory, rolling", Options{InMemory: true, OverlayBytes: 1, SegmentSize: 1, Durability: backend.Normal}, false},
		{"in memory, reopened", Options{InMemory: true, Durability: backend.Normal}, true},
	} {
		if variant.options.InMemory && !campaign.Runs() {
			continue // each option is tested on disk too, and sharing and replication are tested in memory
		}
		t.Run(variant.name, func(t *testing.T) {
			if variant.name != "default" {
				campaign.Long(t)
			}
			t.Parallel()
			backendtest.Run(t, backendtest.Config{New: newStore(variant.options), Reopen: variant.reopen})
		})
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
