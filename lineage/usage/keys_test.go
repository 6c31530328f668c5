package usage_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage"
)

// rowsOfTables returns the number of rows of tables.
func rowsOfTables(t *testing.T, dir string, tables ...string) (all []int) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, usage.FileName))
	require.NoError(t, err)
	defer db.Close()
	for _, table := range tables {
		n := 0
		require.NoError(t, db.QueryRow(`SELECT COUNT(*) FROM `+table).Scan(&n))
		all = append(all, n)
	}
	return all
}

// Answers and their keys are in few rows. Copies are found whatever the window and the row, and count where the first one is
// that a thread still sees.
func TestCopiesInManyRows(t *testing.T) {
	defer usage.SetTogether(usage.SetTogether(100))
	draw := rand.New(rand.NewPCG(1, 2))
	for _, window := range []int{0, 300, 5000} {
		func() {
			defer usage.SetWindowLimit(usage.SetWindowLimit(window))
			store, x, dir := opened(t)
			outputs := make(map[int]int) // of the answers by id, of their last line
			threads := make([]*lineage.Thread, 4)
			at := time.UnixMilli(1_780_000_000_000)
			for i := range threads {
				thread, err := store.CreateThread(bg, lineage.ThreadOptions{})
				require.NoError(t, err)
				threads[i] = thread
				main, err := thread.Active(bg)
				require.NoError(t, err)
				for range 5 {
					var items []lineage.Item
					for range 200 {
						id := draw.IntN(3000)
						outputs[id] = len(outputs) + 1
						at = at.Add(time.Millisecond)
						items = append(items, lineage.Item{
							Kind: lineage.Message, Role: "assistant", Type: "application/json", CreatedAt: at,
							Body: fmt.Appendf(nil, `{"role":"assistant","id":"msg_%d","model":"m","content":"x","usage":{"input_tokens":1,"output_tokens":%d}}`, id, outputs[id]),
						})
					}
					_, err := main.Extend(bg, items...)
					require.NoError(t, err)
				}
				if i == 1 {
					require.NoError(t, x.Update(bg)) // the rest is added to what there is
				}
			}
			sum := int64(0)
			for _, n := range outputs {
				sum += int64(n)
			}
			require.NoError(t, x.Update(bg))
			for _, q := range []usage.Query{{}, {Since: time.UnixMilli(1)}, {By: []usage.By{usage.Branch, usage.Thread}}} {
				report, err := x.Report(bg, q)
				require.NoError(t, err)
				require.EqualValues(t, len(outputs), report.Total.Requests)
				require.Equal(t, sum, report.Total.Tokens[message.Output].N)
			}
			shared := 0
			for _, thread := range threads {
				report, err := x.Report(bg, usage.Query{Thread: thread.ID(), By: []usage.By{usage.Branch}})
				require.NoError(t, err)
				for _, row := range report.Rows {
					if row.Shared {
						shared += int(row.Requests)
					}
				}
			}
			require.Positive(t, shared)
			rows := rowsOfTables(t, dir, "sightings", "keys")
			require.Greater(t, rows[1], 2, "rows of keys are divided")
			require.Less(t, rows[1], 20)
			if window > 1000 {
				require.Less(t, rows[0], 4000/20)
			}
			for _, thread := range threads[:3] {
				require.NoError(t, thread.Delete(bg))
			}
			fresh, err := usage.Open(bg, store, t.TempDir(), usage.Options{})
			require.NoError(t, err)
			defer fresh.Close()
			want, err := fresh.Report(bg, usage.Query{By: []usage.By{usage.Thread, usage.Branch}})
			require.NoError(t, err)
			got, err := x.Report(bg, usage.Query{By: []usage.By{usage.Thread, usage.Branch}})
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Less(t, got.Total.Requests, int64(len(outputs)))
		}()
	}
}
