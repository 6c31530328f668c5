package postgres

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
)

var background = context.Background()

func TestMain(m *testing.M) {
	campaign.Checks(6) // each opens a store
	mostUnfolded = 600 // so that a few commits fold
	manyCommits = 2
	patience, connectionTime = 40*time.Second, 2*time.Minute // a machine may stop the server or a test for half a minute
	os.Exit(m.Run())
}

// TestConformance runs what the suite does from many goroutines, under the race detector.
func TestConformance(t *testing.T) {
	campaign.Long(t)
	conform(t, backendtest.RunConcurrent)
}

//test:norace
func TestConformanceOfReads(t *testing.T) { conform(t, backendtest.RunSequential) }

func conform(t *testing.T, run func(*testing.T, backendtest.Config)) {
	for _, variant := range []struct {
		name   string
		o      Options
		reopen bool
		long   bool
	}{
		{name: "full"},
		{name: "normal", o: Options{Durability: backend.Normal}, long: true},
		{name: "reopened", reopen: true, long: true},
	} {
		t.Run(variant.name, func(t *testing.T) {
			if variant.long {
				if !campaign.Runs() {
					t.Skip("only in campaigns")
				}
			}
			pool := newPool(t, pgtest.DSN(t), func(c *pgxpool.Config) { // as the manual advises without a pooler
				c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
			})
			var stores atomic.Int64
			run(t, backendtest.Config{Reopen: variant.reopen, RoundTrips: true, New: func(t testing.TB) backendtest.OpenFunc {
				o := variant.o
				o.Store, o.Unsafe = fmt.Sprint("store ", stores.Add(1)), true
				return func(ctx context.Context) (backend.Engine, error) { return New(ctx, pool, o) }
			}})
		})
	}
}
