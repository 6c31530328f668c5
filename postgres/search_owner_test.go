package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/search/searchtest"
	"github.com/lineage-store/lineage/postgres/internal/searchindex"
)

// watchedServer calls functions before it reads and writes.
type watchedServer struct {
	searchServer
	reads  func(sql string) // with the statements of a round trip
	writes func()
}

func (s *watchedServer) Read(ctx context.Context, statements func(*pgx.Batch)) error {
	return s.searchServer.Read(ctx, func(b *pgx.Batch) {
		before := b.Len()
		statements(b)
		if s.reads != nil {
			var all strings.Builder
			for _, q := range b.QueuedQueries[before:] {
				all.WriteString(q.SQL)
			}
			s.reads(all.String())
		}
	})
}

func (s *watchedServer) Write(ctx context.Context, do func(searchindex.Tx) error) error {
	if s.writes != nil {
		s.writes()
	}
	return s.searchServer.Write(ctx, do)
}

// watched has an engine use a server that is watched.
func watched(e *Engine) *watchedServer {
	s := &watchedServer{searchServer: searchServer{e}}
	e.search = searchindex.New(s, e.log.store)
	return s
}

var errAgain = errors.New("again")

// twiceServer does all that it is asked to twice, as after a connection was lost.
type twiceServer struct{ searchServer }

func (s twiceServer) Read(ctx context.Context, statements func(*pgx.Batch)) error {
	if err := s.searchServer.Read(ctx, statements); err != nil {
		return err
	}
	return s.searchServer.Read(ctx, statements)
}

func (s twiceServer) Write(ctx context.Context, do func(searchindex.Tx) error) error {
	err := s.searchServer.Write(ctx, func(tx searchindex.Tx) error {
		if err := do(tx); err != nil {
			return err
		}
		return errAgain
	})
	if !errors.Is(err, errAgain) {
		return err
	}
	return s.searchServer.Write(ctx, do)
}

// indexed returns the contents of the tables of an index, without the numbers of terms.
func indexed(t *testing.T, e *Engine) (all []string) {
	t.Helper()
	for _, sql := range []string{
		`SELECT concat_ws(' ', 'text', t.id, (SELECT string_agg(convert_from(m.term, 'UTF8'), ',' ORDER BY w.i) FROM unnest(t.words) WITH ORDINALITY w (n, i) JOIN lineage_search_term m ON m.store = t.store AND m.number = w.n))
  FROM lineage_search_text t WHERE store = $1`,
		`SELECT concat_ws(' ', 'term', term) FROM lineage_search_term WHERE store = $1`,
		`SELECT concat_ws(' ', 'usage', run, seq, head, kind, text, role) FROM lineage_search_usage WHERE store = $1`,
		`SELECT concat_ws(' ', 'run', number, id, parent, after, thread, last, reached) FROM lineage_search_run WHERE store = $1`,
		`SELECT concat_ws(' ', 'tip', id, thread, run, seq, of) FROM lineage_search_tip WHERE store = $1`,
		`SELECT concat_ws(' ', 'thread', id, number, username, keeps) FROM lineage_search_thread WHERE store = $1`,
		`SELECT concat_ws(' ', 'at', number, id, seen_number, seen_id, spans, runs, threads, erased, clearing, busy_until) FROM lineage_search WHERE store = $1`,
	} {
		rows, err := e.log.pool.Query(background, sql+` ORDER BY 1`, exec, e.log.store)
		require.NoError(t, err)
		some, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		all = append(all, some...)
	}
	return all
}

// generation returns the generation of the index.
func generation(t *testing.T, e *Engine) (is int64) {
	t.Helper()
	require.NoError(t, e.log.pool.QueryRow(background, `SELECT generation FROM lineage_search WHERE store = $1`, exec, e.log.store).Scan(&is))
	return is
}

// spoil changes the row of the index.
func spoil(t *testing.T, e *Engine, change string) {
	t.Helper()
	_, err := e.log.pool.Exec(background, `UPDATE lineage_search SET `+change+` WHERE store = $1`, exec, e.log.store)
	require.NoError(t, err)
}

// TestSearchClearingHasAnOwner stops a process before each write while it makes an index again. Another one takes it over
// and makes it. The first one does not take anything away from it.
func TestSearchClearingHasAnOwner(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e, other := handle(t, pool, "s"), handle(t, pool, "s")
	tell(t, e, "one word", "another")
	tell(t, e, "and a word")
	y := searching(t, lineage.New(other), search.Options{})
	require.NoError(t, y.Update(background))
	want, server := indexed(t, e), watched(e)
	x := searching(t, lineage.New(e), search.Options{})
	for stop, stopped := 1, true; stopped; stop++ {
		spoil(t, e, `format = 0`)
		writes, made := 0, int64(0)
		server.writes = func() {
			if writes++; writes == stop {
				spoil(t, e, `busy_until = NULL`) // it is not heard of for a while
				require.NoError(t, y.Update(background))
				made = generation(t, e)
			}
		}
		require.NoError(t, x.Update(background))
		server.writes = nil
		if stopped = writes >= stop; stopped {
			require.Equal(t, made, generation(t, e), "before write %d", stop)
		}
		require.Equal(t, want, indexed(t, e), "before write %d", stop)
		require.Len(t, snippets(t, x, "word"), 2)
		require.True(t, stopped || stop > 8, "%d writes", stop)
	}

	// It ends before each write, and another one continues.
	for stop := 1; stop < 8; stop++ {
		spoil(t, e, `format = 0`)
		ctx, cancel := context.WithCancel(background)
		writes := 0
		server.writes = func() {
			if writes++; writes == stop {
				cancel()
			}
		}
		require.ErrorIs(t, x.Update(ctx), context.Canceled)
		server.writes = nil
		require.NoError(t, y.Update(background))
		require.Equal(t, want, indexed(t, e), "before write %d", stop)
	}
}

// TestSearchClearingIsWaitedFor leaves a clearing to its owner, also in a collection.
func TestSearchClearingIsWaitedFor(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	tell(t, e, "one word")
	server := watched(e)
	x := searching(t, lineage.New(e), search.Options{})
	require.NoError(t, x.Update(background))
	collected := func(ctx context.Context) error { return e.search.Collected(ctx, searchindex.Collection{}) }
	for _, do := range []func(context.Context) error{x.Update, collected} {
		spoil(t, e, `clearing = true, owner = 7, busy_until = now() + interval '1 hour'`)
		limited, cancel := context.WithCancel(background)
		looks := 0
		server.reads = func(string) {
			if looks++; looks == 3 {
				cancel()
			}
		}
		server.writes = func() { t.Error("a write") }
		require.ErrorIs(t, do(limited), context.Canceled)
		server.reads, server.writes = nil, nil
		spoil(t, e, `busy_until = now()`)
		require.NoError(t, do(background))
		require.Len(t, snippets(t, x, "word"), 1)
	}
}

// TestSearchDoesNotWaitForClearing answers from an empty index when there is no time to wait for another process that clears it,
// or to clear it. What was cleared is not cleared again.
func TestSearchDoesNotWaitForClearing(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	tell(t, e, "one word", "another word")
	server, x := watched(e), searching(t, lineage.New(e), search.Options{})
	find := func() (hits int, behind uint64) {
		t.Helper()
		all, err := x.Search(background, search.Query{Text: "word", UpdateFor: 1, Behind: func(commits uint64, why error) {
			require.ErrorIs(t, why, derived.ErrUnfinished)
			behind = commits
		}})
		require.NoError(t, err)
		return len(all), behind
	}
	require.NoError(t, x.Update(background))
	head, err := lineage.New(e).View().Head(background)
	require.NoError(t, err)
	spoil(t, e, `clearing = true, owner = 7, busy_until = now() + interval '1 hour'`)
	server.writes = func() { t.Error("a write") }
	hits, behind := find()
	server.writes = nil
	require.Zero(t, hits)
	require.Equal(t, head.Number, behind)

	spoil(t, e, `busy_until = NULL`)
	left, searches := rowsOf(t, pool, "s"), 0
	for ; behind > 0; searches++ {
		hits, behind = find()
		if now := rowsOf(t, pool, "s"); behind > 0 {
			require.LessOrEqual(t, now, left)
			left = now
		}
	}
	require.Equal(t, 2, hits)
	require.Greater(t, searches, 2)
}

// A process whose step has no time clears in smaller ones.
func TestSearchClearsOnASlowServer(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	var texts []string
	for i := range 40 {
		texts = append(texts, fmt.Sprintf("message %d of many", i))
	}
	tell(t, e, texts...)
	x := searching(t, lineage.New(e), search.Options{})
	require.NoError(t, x.Update(background))
	want := indexed(t, e)
	_, err := pool.Exec(background, `CREATE FUNCTION refuse_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF (SELECT count(*) FROM gone) > 10 THEN RAISE 'too many' USING ERRCODE = '`+queryCanceled+`'; END IF; RETURN NULL; END $$;
CREATE TRIGGER refuse_many AFTER DELETE ON lineage_search_usage REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION refuse_many()`, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	spoil(t, e, `format = 0`)
	require.NoError(t, x.Update(background))
	require.Equal(t, want, indexed(t, e))
	require.Len(t, snippets(t, x, "many"), 20)
}

// TestSearchClearsOnlyWhatIsUseless does not clear the index that another process made while this one looked.
func TestSearchClearsOnlyWhatIsUseless(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e, other := handle(t, pool, "s"), handle(t, pool, "s")
	tell(t, e, "one word")
	server, looks, made := watched(e), 0, int64(0)
	x, y := searching(t, lineage.New(e), search.Options{}), searching(t, lineage.New(other), search.Options{})
	require.NoError(t, x.Update(background))
	server.reads = func(string) {
		switch looks++; looks {
		case 2:
			spoil(t, e, `format = 0`)
		case 3:
			require.NoError(t, y.Update(background))
			made = generation(t, e)
		}
	}
	require.NoError(t, x.Update(background))
	require.GreaterOrEqual(t, looks, 3)
	require.Equal(t, made, generation(t, e))
}

// TestSearchInOneGeneration makes the index again before each round trip of a search. The numbers are others then.
func TestSearchInOneGeneration(t *testing.T) {
	for _, statement := range []string{"cardinality", "LIMIT $3", "a (n, run)"} {
		t.Run(statement, func(t *testing.T) {
			pool := newPool(t, pgtest.DSN(t), nil)
			e, other := handle(t, pool, "s"), handle(t, pool, "s")
			first := tell(t, e, "the first word")
			tell(t, e, "another word of many")
			tell(t, e, "the last word")
			x, y := searching(t, lineage.New(e), search.Options{}), searching(t, lineage.New(other), search.Options{})
			q := search.Query{Text: "another AND (word OR many)"}
			hits, err := x.Search(background, q)
			require.NoError(t, err)
			require.Len(t, hits, 1)
			server, began := watched(e), 0
			x = searching(t, lineage.New(e), search.Options{})
			server.reads = func(sql string) {
				if !strings.Contains(sql, statement) {
					return
				}
				if began++; began == 1 {
					require.NoError(t, first.Delete(background))
					_, err := other.Collect(background, all)
					require.NoError(t, err)
					require.NoError(t, y.Update(background))
				}
			}
			hits, err = x.Search(background, q)
			require.NoError(t, err)
			require.Len(t, hits, 1)
			require.Equal(t, "another word of many", hits[0].Text)
			require.Equal(t, 2, began)

			// In the same epoch, for ever.
			server.reads = func(sql string) {
				if strings.Contains(sql, statement) {
					began++
					spoil(t, e, `format = 0`)
					require.NoError(t, y.Update(background))
				}
			}
			began = 0
			_, err = x.Search(background, q)
			require.ErrorIs(t, err, searched.ErrRebuilt)
			require.Equal(t, 11, began)
		})
	}
}

// TestSearchIsRepaired makes a damaged index again, once.
func TestSearchIsRepaired(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	do := func(sql string) {
		t.Helper()
		_, err := pool.Exec(background, sql, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
	}
	// As of a damaged index of the server, which finds two threads.
	do(`CREATE FUNCTION ambiguous() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF EXISTS (SELECT FROM lineage_search_term WHERE term = 'twice') THEN PERFORM (SELECT n FROM generate_series(1, 2) AS n); END IF;
  RETURN NEW;
END $$`)
	do(`CREATE TRIGGER ambiguous BEFORE INSERT ON lineage_search_run FOR EACH ROW EXECUTE FUNCTION ambiguous()`)
	tell(t, e, "a word")
	x := searching(t, lineage.New(e), search.Options{})
	for i, damage := range []string{
		`INSERT INTO lineage_search_run SELECT store, runs + 1, 'another', NULL, 0, NULL, 1 FROM lineage_search`, // 23505
		`INSERT INTO lineage_search_term SELECT store, 'twice', 1 FROM lineage_search`,                           // 21000
		`UPDATE lineage_search_text SET id = id || '\x00'; UPDATE lineage_search_usage SET text = text || '\x00'`,
	} {
		require.Len(t, snippets(t, x, "word"), i+1)
		was := generation(t, e)
		do(damage)
		tell(t, e, fmt.Sprint("word ", i))
		require.Len(t, snippets(t, x, "word"), i+2, damage)
		require.NotEqual(t, was, generation(t, e), damage)
	}

	server := watched(e)
	x = searching(t, lineage.New(e), search.Options{})
	server.reads = func(sql string) {
		if strings.Contains(sql, "a (n, run)") {
			server.reads = nil
			do(`DELETE FROM lineage_search_run`)
		}
	}
	require.Len(t, snippets(t, x, "word"), 4)
	require.Nil(t, server.reads)

	// Something is always wrong.
	do(`ALTER TABLE lineage_search_usage ADD CONSTRAINT never CHECK (kind < 0) NOT VALID`)
	tell(t, e, "the last word")
	began, was := 0, generation(t, e)
	server.reads = func(string) {
		if is := generation(t, e); is != was {
			was = is
			began++
		}
	}
	_, err := x.Search(background, search.Query{Text: "word"})
	require.Equal(t, "23514", sqlState(err))
	require.Equal(t, 1, began)
	do(`ALTER TABLE lineage_search_usage DROP CONSTRAINT never`)
	require.Len(t, snippets(t, x, "word"), 5)
}

// occurrences counts what is found.
type occurrences struct{ n int }

func (c *occurrences) Reset()                  { c.n = 0 }
func (c *occurrences) Add(searched.Occurrence) { c.n++ }

// TestSearchRepeatsSteps does everything twice.
func TestSearchRepeatsSteps(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e, plain := handle(t, pool, "s"), handle(t, pool, "s")
	e.search = searchindex.New(twiceServer{searchServer{e}}, e.log.store)
	s := lineage.New(e)
	searchtest.Everything(t, s, searching(t, s, search.Options{}))
	spoil(t, e, `format = 0`)
	require.NoError(t, searching(t, lineage.New(plain), search.Options{}).Update(background))
	want := indexed(t, plain)
	spoil(t, e, `format = 0`)
	require.NoError(t, searching(t, s, search.Options{}).Update(background))
	require.Equal(t, want, indexed(t, plain))

	leaves := []query.Leaf{{Term: "okapi"}}
	var once, twice occurrences
	for e, c := range map[*Engine]*occurrences{plain: &once, e: &twice} {
		_, err := e.search.View().Find(background, &searched.Scope{}, leaves, query.Condition{Term: "okapi"}, c)
		require.NoError(t, err)
	}
	require.NotZero(t, once.n)
	require.Equal(t, once, twice)
}

// TestSearchCancelled has others not wait for an update or a clearing that was cancelled.
func TestSearchCancelled(t *testing.T) {
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	searched.WindowLimit = 1
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	tell(t, e, "one word", "another word", "more", "the end")
	ctx, cancel := context.WithCancel(background)
	windows := 0
	x := searching(t, lineage.New(e), search.Options{Progress: func(uint64, uint64) {
		if windows++; windows == 2 {
			var busy bool
			require.NoError(t, pool.QueryRow(background, `SELECT busy_until > now() FROM lineage_search`, exec).Scan(&busy))
			require.True(t, busy)
			cancel()
		}
	}})
	require.ErrorIs(t, x.Update(ctx), context.Canceled)
	var until *time.Time
	require.NoError(t, pool.QueryRow(background, `SELECT busy_until FROM lineage_search`, exec).Scan(&until))
	require.Nil(t, until)
	require.Len(t, snippets(t, x, "word"), 2)
}
