package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
)

// TestForms has two processes with six writers each write in every form. Each message is there once, in the order of its writer.
func TestForms(t *testing.T) {
	const processes, writers, each = 2, 6, 50
	spans := map[string]string{
		nameTyped:   `SELECT encode(run, 'hex'), place FROM typed_span JOIN typed_block USING (store, hash) ORDER BY 1, 2`,
		nameEntries: `SELECT encode(substr(key, 2, 16), 'hex'), ('x' || encode(substr(key, 18), 'hex'))::bit(64)::bigint FROM entry WHERE substr(key, 1, 1) = 'S' ORDER BY 1, 2`,
		nameTail:    "",
	}
	for name, f := range prototypes {
		t.Run(name, func(t *testing.T) {
			ctx, address := context.Background(), pgtest.DSN(t)
			place := &schema{address: address}
			require.NoError(t, place.exec(ctx, append(formTables[:len(formTables):len(formTables)], f.tables...)...))
			var writing sync.WaitGroup
			var ends []func() error
			for number := range processes {
				extends, end, err := processWork{name, full, number, writers, 100, serverPlace(place, 0)}.open(ctx)
				require.NoError(t, err)
				ends = append(ends, end)
				for i, extend := range extends {
					writing.Go(func() {
						for n := range each {
							assert.NoError(t, extend(ctx, fmt.Append(nil, number, i, n)))
						}
					})
				}
			}
			writing.Wait()
			for _, end := range ends {
				require.NoError(t, end())
			}
			var last int64
			require.NoError(t, place.value(&last, `SELECT last FROM form_store`))
			require.EqualValues(t, processes*writers*each, last)

			pool, err := pgxpool.New(ctx, address)
			require.NoError(t, err)
			defer pool.Close()
			places := map[string]int64{}
			note := func(context string, at int64) {
				places[context]++
				require.Equal(t, places[context], at)
			}
			query := spans[name]
			if name == nameTail {
				query = `SELECT data, 0 FROM form_log ORDER BY n`
			}
			rows, err := pool.Query(ctx, query)
			require.NoError(t, err)
			for rows.Next() {
				values, err := rows.Values()
				require.NoError(t, err)
				data, isRow := values[0].([]byte)
				if !isRow {
					note(values[0].(string), values[1].(int64))
					continue
				}
				batch, err := decodeBatch(data)
				require.NoError(t, err)
				for _, c := range batch {
					note(string(c.context[:]), c.after.place)
				}
			}
			require.NoError(t, rows.Err())
			require.Len(t, places, processes*writers)
			for _, n := range places {
				require.EqualValues(t, each, n)
			}
		})
	}
}
