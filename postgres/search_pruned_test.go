package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/search/searchtest"
	"github.com/lineage-store/lineage/postgres/internal/searchindex"
	"github.com/lineage-store/lineage/structure"
)

// contentOfIndex returns all rows of the index with ids in the place of numbers, but for what it keeps of erased texts.
func contentOfIndex(t require.TestingT, e *Engine) (all []string) {
	for _, sql := range []string{
		`SELECT concat_ws(' ', 'text', t.id, (SELECT string_agg(convert_from(m.term, 'UTF8'), ',' ORDER BY w.i) FROM unnest(t.words) WITH ORDINALITY w (n, i) JOIN lineage_search_term m ON m.store = t.store AND m.number = w.n))
  FROM lineage_search_text t WHERE store = $1 AND (words IS NOT NULL OR get_byte(id, 15) = 254)`,
		`SELECT concat_ws(' ', 'term', term) FROM lineage_search_term WHERE store = $1`,
		`SELECT concat_ws(' ', 'usage', r.id, seq, head, kind, text, role) FROM lineage_search_usage u JOIN lineage_search_text t USING (store) JOIN lineage_search_run r USING (store)
  WHERE store = $1 AND t.id = u.text AND t.words IS NOT NULL AND r.number = u.run`,
		`SELECT 'usage of nothing' FROM lineage_search_usage u WHERE store = $1 AND (NOT EXISTS (SELECT FROM lineage_search_text t WHERE t.store = $1 AND t.id = u.text) OR NOT EXISTS (SELECT FROM lineage_search_run r WHERE r.store = $1 AND r.number = u.run))`,
		`SELECT concat_ws(' ', 'run', r.id, p.id, r.after, r.thread, r.last, r.reached) FROM lineage_search_run r LEFT JOIN lineage_search_run p ON p.store = $1 AND p.number = r.parent WHERE r.store = $1`,
		`SELECT concat_ws(' ', 'tip', t.id, t.thread, r.id, seq, of) FROM lineage_search_tip t LEFT JOIN lineage_search_run r ON r.store = $1 AND r.number = t.run WHERE t.store = $1`,
		`SELECT concat_ws(' ', 'thread', id, username, keeps) FROM lineage_search_thread WHERE store = $1`,
		`SELECT concat_ws(' ', 'at', number, id, seen_number, seen_id, spans, clearing, busy_until) FROM lineage_search WHERE store = $1`,
	} {
		rows, err := e.log.pool.Query(background, sql+` ORDER BY 1`, exec, e.log.store)
		require.NoError(t, err)
		some, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		all = append(all, some...)
	}
	return all
}

// requireAsMadeAgain updates an index and compares it with one that is made again.
func requireAsMadeAgain(t require.TestingT, e *Engine, x *search.Index) {
	require.NoError(t, x.Update(background))
	kept := contentOfIndex(t, e)
	_, err := e.log.pool.Exec(background, `UPDATE lineage_search SET format = 0 WHERE store = $1`, exec, e.log.store)
	require.NoError(t, err)
	require.NoError(t, x.Update(background))
	require.Equal(t, contentOfIndex(t, e), kept)
}

// isKept reports whether the index is of the epoch of the store and has commits.
func isKept(t require.TestingT, e *Engine) (kept bool) {
	require.NoError(t, e.log.pool.QueryRow(background, `SELECT m.epoch = s.epoch AND NOT m.clearing AND m.number > 0 FROM lineage_search m JOIN lineage_store s USING (store) WHERE store = $1`,
		exec, e.log.store).Scan(&kept))
	return kept
}

// TestSearchCollectionKeepsTheIndex changes a store at random, with collections by two handles. Before anybody searches again,
// the index has what lives; after an update it is like one that is made again.
func TestSearchCollectionKeepsTheIndex(t *testing.T) {
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	defer func(was int) { searchindex.PruneStep = was }(searchindex.PruneStep)
	pool := newPool(t, pgtest.DSN(t), nil)
	stores, kept := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		stores++
		searchindex.PruneStep = rapid.SampledFrom([]int{5000, 1, 3}).Draw(r, "step")
		searched.WindowLimit = rapid.SampledFrom([]int{0, 1, 7}).Draw(r, "window")
		var engines []*Engine
		var indexes []*search.Index
		for i := range 2 {
			e, err := New(background, pool, Options{Store: fmt.Sprint("s", stores), Unsafe: true})
			require.NoError(r, err)
			if i == 1 {
				e.search = searchindex.New(repeating{searchServer{e}}, e.log.store)
			}
			s := lineage.New(e)
			defer s.Close()
			engines, indexes = append(engines, e), append(indexes, searching(r, s, search.Options{}))
		}
		m := searchtest.NewMachine(r, lineage.New(engines[0]))
		for range rapid.IntRange(1, 3).Draw(r, "rounds") {
			for range rapid.IntRange(0, 15).Draw(r, "steps") {
				m.Step()
			}
			require.NoError(r, rapid.SampledFrom(indexes).Draw(r, "index").Update(background))
			for range rapid.IntRange(0, 5).Draw(r, "more") {
				m.Step()
			}
			report, err := rapid.SampledFrom(engines).Draw(r, "collector").Collect(background, all)
			require.NoError(r, err)
			if report.Records > 0 && isKept(r, engines[0]) {
				kept++
			}
			m.Check(indexes[1])
			requireAsMadeAgain(r, engines[0], indexes[0])
		}
	})
	require.NotZero(t, kept)
}

// TestSearchPruningIsInterrupted stops pruning before each write, or has another process take the index over there. Nothing of
// what was collected stays in the index.
func TestSearchPruningIsInterrupted(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e, other := handle(t, pool, "s"), handle(t, pool, "s")
	s := lineage.New(e)
	x, y := searching(t, s, search.Options{}), searching(t, lineage.New(other), search.Options{})
	stays := tell(t, e, "a word that stays", "secret that is erased", "another")
	main, err := stays.Active(background)
	require.NoError(t, err)
	_, err = main.Summarize(background, searchtest.Saying("of words"), lineage.SummarizeOptions{})
	require.NoError(t, err)
	gone := tell(t, e, "a word that goes", "secret word")
	require.NoError(t, x.Update(background))
	require.NoError(t, gone.Delete(background))
	require.NoError(t, s.Erase(background, content.Sum([]byte("secret that is erased"))))
	tables := []string{"lineage_search", "lineage_search_text", "lineage_search_usage", "lineage_search_term", "lineage_search_tip", "lineage_search_run", "lineage_search_thread"}
	run := func(sql string) {
		t.Helper()
		_, err := pool.Exec(background, sql, exec)
		require.NoError(t, err)
	}
	for _, table := range tables {
		run(`CREATE TABLE was_` + table + ` AS SELECT * FROM ` + table)
	}
	_, err = e.Collect(background, all)
	require.NoError(t, err)
	require.True(t, isKept(t, e))
	require.NotContains(t, fmt.Sprint(contentOfIndex(t, e)), "term "+fmt.Sprintf("\\x%x", "secret"))
	require.NoError(t, y.Update(background))
	want := contentOfIndex(t, e)
	requireAsMadeAgain(t, e, y)

	c := searchindex.Collection{View: e, Last: func(id structure.RunID) (uint64, bool) {
		last, err := e.Last(background, id)
		if !errors.Is(err, backend.ErrNotFound) {
			require.NoError(t, err)
		}
		return last.Seq, err == nil
	}}
	require.NoError(t, pool.QueryRow(background, `SELECT epoch FROM lineage_store`, exec).Scan(&c.Epoch))
	server := watched(e)
	for _, takesOver := range []bool{false, true} {
		for stop, stopped := 1, true; stopped; stop++ {
			for _, table := range tables {
				run(`TRUNCATE ` + table)
				run(`INSERT INTO ` + table + ` SELECT * FROM was_` + table)
			}
			ctx, cancel := context.WithCancel(background)
			writes := 0
			server.writes = func() {
				if writes++; writes == stop && takesOver {
					spoil(t, e, `busy_until = NULL`) // it is not heard of for a while
					require.NoError(t, y.Update(background))
				} else if writes == stop {
					cancel()
				}
			}
			err := e.search.Collected(ctx, c)
			server.writes = nil
			stopped = writes >= stop
			if stopped && !takesOver {
				require.ErrorIs(t, err, context.Canceled)
			} else {
				require.NoError(t, err)
				require.True(t, isKept(t, e))
			}
			require.NoError(t, y.Update(background))
			require.Equal(t, want, contentOfIndex(t, e), "write %d, %v", stop, takesOver)
			cancel()
		}
	}
}
