package postgres

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

// Goroutines that share a snapshot read ahead at the same time, and find what the others have read, and what is there.
func TestReadAheadTogether(t *testing.T) {
	const threads = 40
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	var ids []structure.ThreadID
	for i := range threads {
		ids = append(ids, tell(t, e, fmt.Sprint("thread ", i), "more").ID())
	}
	require.NoError(t, lineage.New(e).Close())
	e = handle(t, pool, "s") // with empty caches
	snapshot, err := e.Snapshot(background)
	require.NoError(t, err)
	tell(t, handle(t, pool, "s"), "later")
	ahead := snapshot.(backend.ThreadsAhead)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 5 {
				some := ids[(7*i+5*j)%(threads-10):][:10]
				var err error
				if (i+j)%2 == 0 {
					err = ahead.ThreadsAhead(background, some)
				} else {
					err = ahead.ReachAhead(background, some)
				}
				if err != nil {
					t.Error(err)
				}
				for _, id := range some {
					thread, err := snapshot.Thread(background, id)
					if err != nil {
						t.Error(err)
						continue
					}
					reach, err := backend.ReachOfAll(background, snapshot, []*structure.Thread{thread})
					n := 0
					for b, failed := range snapshot.Branches(background, id, "", "") {
						if failed != nil || b.Thread != id {
							t.Error(b, failed)
						}
						n++
					}
					if err != nil || len(reach) != 1 || n != 1 {
						t.Error(id, len(reach), n, err)
					}
				}
			}
		})
	}
	wg.Wait()
	found, err := records.OfThreads(background, lineage.New(e), ids)
	require.NoError(t, err)
	require.Len(t, found, threads)
}
