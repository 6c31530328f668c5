package postgres

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
)

// TestBytesOfMessages limits what the entries of a message take on the server, in threads of 100 messages, and what is there
// for a time only.
func TestBytesOfMessages(t *testing.T) {
	campaign.Long(t)
	folding(t, 64<<10)
	for _, shape := range []struct{ messages, each, most int }{{1000, 1, 400}, {5000, 100, 310}} {
		t.Run(fmt.Sprint(shape.each), func(t *testing.T) {
			pool := newPool(t, pgtest.DSN(t), nil)
			e := handle(t, pool, "s")
			s := lineage.New(e)
			r := rand.New(rand.NewPCG(1, 2))
			for range shape.messages / 100 {
				thread, err := s.CreateThread(background, lineage.ThreadOptions{Title: "a thread"})
				require.NoError(t, err)
				main, err := thread.Active(background)
				require.NoError(t, err)
				for range 100 / shape.each {
					var some []lineage.Item
					for range shape.each {
						some = append(some, lineage.User(strconv.FormatUint(r.Uint64(), 36)))
					}
					_, err = main.Extend(background, some...)
					require.NoError(t, err)
				}
			}
			_, err := pool.Exec(background, `VACUUM`)
			require.NoError(t, err)
			size := func(table string) (bytes int) {
				require.NoError(t, pool.QueryRow(background, `SELECT pg_total_relation_size($1::text::regclass)`, table).Scan(&bytes))
				return bytes
			}
			require.Less(t, size("lineage_entry")/shape.messages, shape.most)
			require.Less(t, size("lineage_former"), 1<<20)
			t.Logf("%d bytes of entries a message, %d of changes", size("lineage_entry")/shape.messages, size("lineage_former"))
		})
	}
}
