package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/search/searchtest"
	"github.com/lineage-store/lineage/postgres/internal/searchindex"
)

// searching opens the search index of a store.
func searching(t require.TestingT, s *lineage.Store, o search.Options) *search.Index {
	x, err := search.Open(background, s, "/nowhere", o)
	require.NoError(t, err)
	return x
}

// own makes an index in a file of its own, which has what the index on the server has.
func own(t require.TestingT, s *lineage.Store, dir string) *search.Index {
	x, err := search.Open(background, s, dir, search.Options{Embedder: search.Embedder{Model: "none", Embed: func(_ context.Context, texts []string) ([][]float32, error) {
		return make([][]float32, len(texts)), nil
	}}})
	require.NoError(t, err)
	return x
}

func TestSearchEverything(t *testing.T) {
	s := lineage.New(handle(t, newPool(t, pgtest.DSN(t), nil), "s"))
	searchtest.Everything(t, s, searching(t, s, search.Options{}))
}

func TestSearchEqualIDs(t *testing.T) {
	s := lineage.New(handle(t, newPool(t, pgtest.DSN(t), nil), "s"))
	searchtest.EqualIDs(t, s, searching(t, s, search.Options{}))
}

func TestSearchOutdated(t *testing.T) {
	s := lineage.New(handle(t, newPool(t, pgtest.DSN(t), nil), "s"))
	searchtest.Outdated(t, s, searching(t, s, search.Options{}))
}

// A prefix that stands for too many words is refused.
func TestSearchOfBroadPrefixes(t *testing.T) {
	defer func(was int) { searched.MostExpanded = was }(searched.MostExpanded)
	searched.MostExpanded = 3
	e := handle(t, newPool(t, pgtest.DSN(t), nil), "s")
	x := searching(t, lineage.New(e), search.Options{})
	tell(t, e, "aa ab ac ba", "bb")
	require.Len(t, snippets(t, x, "a*"), 1)
	require.Len(t, snippets(t, x, "b* aa"), 1)
	for _, query := range []string{"a* OR b*", "a* b*"} { // together
		_, err := x.Search(background, search.Query{Text: query})
		require.ErrorIs(t, err, searched.ErrTooBroad)
		require.ErrorIs(t, err, lineage.ErrInvalid)
	}
	tell(t, e, "ad")
	_, err := x.Search(background, search.Query{Text: "a*"})
	require.ErrorIs(t, err, searched.ErrTooBroad)
	require.Len(t, snippets(t, x, "aa"), 1)
}

// repeating executes each transaction for the index twice, as after the server refused the first one.
type repeating struct{ searchServer }

var errRefused = errors.New("refused for the test")

func (s repeating) Write(ctx context.Context, do func(searchindex.Tx) error) error {
	err := s.searchServer.Write(ctx, func(tx searchindex.Tx) error { return cmp.Or(do(tx), errRefused) })
	if !errors.Is(err, errRefused) {
		return err
	}
	return s.searchServer.Write(ctx, do)
}

// TestSearchRepeatsTransactions counts the steps of runs once.
func TestSearchRepeatsTransactions(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	e.search = searchindex.New(repeating{searchServer{e}}, e.log.store)
	tell(t, e, "one word", "another word")
	require.Len(t, snippets(t, searching(t, lineage.New(e), search.Options{}), "word"), 2)
	var steps int
	require.NoError(t, pool.QueryRow(background, `SELECT sum(last) FROM lineage_search_run`, exec).Scan(&steps))
	require.Equal(t, 2, steps)
}

// inserted adds up what the statements of a transaction for the index insert.
type inserted struct{ rows, words int }

// counting calls a function of a transaction, and counts.
func (n *inserted) counting(tx searchindex.Tx, do func(searchindex.Tx) error) error {
	*n = inserted{}
	return do(func(statements func(*pgx.Batch)) error {
		return tx(func(b *pgx.Batch) {
			was := b.Len()
			statements(b)
			for _, q := range b.QueuedQueries[was:] {
				if !strings.HasPrefix(q.SQL, "INSERT") {
					continue
				}
				for _, arg := range q.Arguments {
					switch arg := arg.(type) {
					case [][]byte:
						n.rows = max(n.rows, len(arg))
					case []string:
						n.words += len(strings.FieldsFunc(strings.Join(arg, ""), func(r rune) bool { return r < '-' || r > '9' }))
					}
				}
			}
		})
	})
}

// parted counts what transactions for the index insert, and ends one of them.
type parted struct {
	searchServer
	left             int // transactions until that one
	rows, words, all int // the most rows and words of a transaction, and the number of transactions
}

func (s *parted) Write(ctx context.Context, do func(searchindex.Tx) error) error {
	s.all++
	s.left--
	var n inserted
	err := s.searchServer.Write(ctx, func(tx searchindex.Tx) error {
		err := n.counting(tx, do)
		if s.left == 0 {
			err = cmp.Or(err, errRefused)
		}
		return err
	})
	s.rows, s.words = max(s.rows, n.rows), max(s.words, n.words)
	return err
}

// slowServer has no time for transactions that insert more than some rows or words.
type slowServer struct {
	searchServer
	rows, words int
	slow, all   int // transactions
}

func (s *slowServer) Write(ctx context.Context, do func(searchindex.Tx) error) error {
	s.all++
	return s.searchServer.Write(ctx, func(tx searchindex.Tx) error {
		var n inserted
		err := n.counting(tx, do)
		if err == nil && (n.rows > s.rows || n.words > s.words) {
			s.slow++
			err = &pgconn.PgError{Code: queryCanceled, Message: "canceling statement due to statement timeout"}
		}
		return err
	})
}

// TestSearchWritesInParts adds commits of any size, a message of any size among them, in transactions of a limited size. When
// an update ends early, the next one continues.
func TestSearchWritesInParts(t *testing.T) {
	defer func(was int) { searchindex.MostWritten = was }(searchindex.MostWritten)
	searchindex.MostWritten = 10
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	thread := tell(t, e, "the first message")
	main, err := thread.Active(background)
	require.NoError(t, err)
	var items []lineage.Item
	for i := range 50 {
		items = append(items, lineage.User(fmt.Sprintf("message %d of many", i)))
	}
	long := ""
	for i := range 40 {
		long += fmt.Sprint(" word", i)
	}
	_, err = main.Extend(background, append(items, lineage.User(long))...) // one commit
	require.NoError(t, err)
	_, err = main.Fork(background, lineage.ForkOptions{})
	require.NoError(t, err)
	_, err = main.Summarize(background, searchtest.Saying("sum of many"), lineage.SummarizeOptions{})
	require.NoError(t, err)
	ended := 0
	for {
		server := &parted{searchServer: searchServer{e}, left: ended + 1}
		e.search = searchindex.New(server, e.log.store)
		err := searching(t, lineage.New(e), search.Options{}).Update(background)
		require.LessOrEqual(t, server.rows, 10)
		require.LessOrEqual(t, server.words, 10+40)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, errRefused)
		ended++
		_, err = pool.Exec(background, `UPDATE lineage_search SET busy_until = NULL`, exec)
		require.NoError(t, err)
	}
	require.Greater(t, ended, 10)
	requireSameHits(t, e, thread, "message", "many", "word0 word39", "word1*", "sum", "first OR 49")
}

// requireSameHits compares the index on the server with one in a file.
func requireSameHits(t *testing.T, e *Engine, thread *lineage.Thread, queries ...string) {
	t.Helper()
	file := own(t, lineage.New(e), t.TempDir())
	defer file.Close()
	x := searching(t, lineage.New(e), search.Options{})
	for _, query := range queries {
		for _, q := range []search.Query{{Text: query, Limit: 100}, {Text: query, Limit: 100, Thread: thread.ID()}} {
			want, err := file.Search(background, q)
			require.NoError(t, err)
			got, err := x.Search(background, q)
			require.NoError(t, err)
			require.NotEmpty(t, want, query)
			require.Len(t, got, len(want), query)
			for i := range want {
				require.Equal(t, want[i].Text, got[i].Text, query)
				require.InDelta(t, want[i].Rank, got[i].Rank, 1e-9, query)
			}
		}
	}
}

// A window or a part of one for which the server has no time is halved until it has, and grows again. A message for which it has
// none is an error. The commits are small ones, and one large one.
func TestSearchOnASlowServer(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	var texts []string
	for i := range 60 {
		texts = append(texts, fmt.Sprintf("message %d of many", i))
	}
	thread := tell(t, e, texts...)
	main, err := thread.Active(background)
	require.NoError(t, err)
	var items []lineage.Item
	for i := range 60 {
		items = append(items, lineage.User(fmt.Sprintf("another %d of many", i)))
	}
	_, err = main.Extend(background, items...)
	require.NoError(t, err)
	update := func(rows, words int, until time.Time) (*slowServer, error) {
		server := &slowServer{searchServer: searchServer{e}, rows: rows, words: words}
		e.search = searchindex.New(server, e.log.store)
		err := e.SearchIndex().Update(background, lineage.New(e), searched.Updating{Until: until})
		return server, err
	}
	never, err := update(1, 1, time.Time{})
	require.ErrorIs(t, err, derived.ErrSlow)
	require.ErrorContains(t, err, "statement timeout")
	require.Less(t, never.slow, 15)
	_, err = update(16, 40, time.Now().Add(-time.Hour)) // a part of it is written, and not less than that
	require.ErrorIs(t, err, derived.ErrUnfinished)
	mark, err := e.SearchIndex().Mark(background)
	require.NoError(t, err)
	require.Positive(t, mark.At.Number)
	slow, err := update(16, 40, time.Time{})
	require.NoError(t, err)
	require.Positive(t, slow.slow)
	require.Less(t, slow.slow, 30)
	require.Greater(t, slow.all, 2*slow.slow, "it grows carefully")
	quick, err := update(1, 1, time.Time{})
	require.NoError(t, err)
	require.Zero(t, quick.slow, "there is nothing left")
	requireSameHits(t, e, thread, "message", "many", "59", "another OR 7")
}

// The server ends a statement that takes too long, here because each row takes a while. The limit is that of the database: the
// server of the test leaves it as it is.
func TestSearchBeyondTheTimeOfAStatement(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	var texts []string
	for i := range 100 {
		texts = append(texts, fmt.Sprintf("message %d of many", i))
	}
	thread := tell(t, e, texts...)
	rowsTake := func(seconds string) {
		_, err := pool.Exec(background, `CREATE OR REPLACE FUNCTION wait_a_while() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(`+seconds+`); RETURN NEW; END $$;
CREATE OR REPLACE TRIGGER wait_a_while BEFORE INSERT ON lineage_search_usage FOR EACH ROW EXECUTE FUNCTION wait_a_while()`, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
	}
	e.search = searchindex.New(limitedServer{searchServer{e}}, e.log.store)
	rowsTake("3600")
	_, err := searching(t, lineage.New(e), search.Options{}).Search(background, search.Query{Text: "many"})
	require.ErrorIs(t, err, derived.ErrSlow)
	require.Equal(t, queryCanceled, sqlState(err))
	rowsTake("0.02") // all of them 2 s
	requireSameHits(t, e, thread, "message", "many", "99")
}

// limitedServer has a second for a statement.
type limitedServer struct{ searchServer }

func (s limitedServer) Write(ctx context.Context, do func(searchindex.Tx) error) error {
	return s.searchServer.Write(ctx, func(tx searchindex.Tx) error {
		if err := tx(func(b *pgx.Batch) { b.Queue(`SET LOCAL statement_timeout = 1000`) }); err != nil {
			return err
		}
		return do(tx)
	})
}

// TestSearchesAgree changes stores in one database at random, and compares the index on the server, as two processes use
// it, with one in a file. The transactions of one of them are repeated.
//
//test:norace
func TestSearchesAgree(t *testing.T) {
	defer func(limit, written int) { searched.WindowLimit, searchindex.MostWritten = limit, written }(searched.WindowLimit, searchindex.MostWritten)
	defer setDriving(searchindex.MostDriving, searchindex.FewMessages)
	defer campaign.Checks(1)()
	pool := newPool(t, pgtest.DSN(t), nil)
	stores := 0
	rapid.Check(t, func(r *rapid.T) {
		stores++
		searched.WindowLimit = rapid.SampledFrom([]int{0, 1, 7}).Draw(r, "window")
		searchindex.MostWritten = rapid.SampledFrom([]int{1 << 17, 1, 7}).Draw(r, "written")
		setDriving(rapid.SampledFrom([]int{5_000, 0, 2}).Draw(r, "driving"), rapid.SampledFrom([]int64{10_000, 0, 10}).Draw(r, "few"))
		open := func(repeats bool) *lineage.Store {
			e, err := New(background, pool, Options{Store: fmt.Sprint("s", stores), Unsafe: true})
			require.NoError(r, err)
			if repeats {
				e.search = searchindex.New(repeating{searchServer{e}}, e.log.store)
			}
			return lineage.New(e)
		}
		one, other := open(false), open(true)
		defer one.Close()
		defer other.Close()
		file := own(r, one, t.TempDir())
		defer file.Close()
		a, b := searching(r, one, search.Options{}), searching(r, other, search.Options{})
		m := searchtest.NewMachine(r, one)
		for range rapid.IntRange(10, 60).Draw(r, "steps") {
			m.Step()
			if rapid.IntRange(0, 5).Draw(r, "search") == 0 {
				m.Agree(file, rapid.SampledFrom([]*search.Index{a, b}).Draw(r, "index"))
			}
		}
		m.Agree(file, a)
		if rapid.Bool().Draw(r, "collect") {
			_, err := one.Collect(background, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
			require.NoError(r, err)
			fresh := own(r, one, t.TempDir())
			defer fresh.Close()
			m.Agree(fresh, b)
		}
	})
}

func setDriving(most int, few int64) { searchindex.MostDriving, searchindex.FewMessages = most, few }

// countedRows counts the rows of a table that searches read.
type countedRows struct {
	searchServer
	table string
	rows  int64
}

func (s *countedRows) Read(ctx context.Context, do func(*pgx.Batch)) error {
	var before, after int64
	err := s.searchServer.Read(ctx, func(b *pgx.Batch) {
		count := func(rows *int64) { // of the session, since it reported them
			b.Queue(`SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = $1`, s.table).QueryRow(func(row pgx.Row) error { return row.Scan(rows) })
		}
		count(&before)
		do(b)
		count(&after)
	})
	s.rows += after - before
	return err
}

// A search in a scope reads what is less: the texts with the words, or the messages in scope.
func TestSearchInAScopeReadsFew(t *testing.T) {
	const threads, length = 60, 50
	defer setDriving(searchindex.MostDriving, searchindex.FewMessages)
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	s := lineage.New(e)
	for i := range threads {
		thread, err := s.CreateThread(background, lineage.ThreadOptions{UserID: fmt.Sprint("user", i%2), SourceID: fmt.Sprint(i)})
		require.NoError(t, err)
		c, err := thread.Active(background)
		require.NoError(t, err)
		items := make([]lineage.Item, length)
		for j := range items {
			text := fmt.Sprintf("common %d %d", i, j)
			if j == 0 && i%10 < 2 {
				text += " rare"
			}
			if j%10 == 0 {
				text += " tenth"
			}
			items[j] = lineage.User(text)
		}
		_, err = c.Extend(background, items...)
		require.NoError(t, err)
	}
	one, err := s.FindThread(background, "0")
	require.NoError(t, err)
	counting := &countedRows{searchServer: searchServer{e}, table: "lineage_search_usage"}
	e.search = searchindex.New(counting, e.log.store)
	x := searching(t, s, search.Options{})
	require.NoError(t, x.Update(background))
	_, err = pool.Exec(background, `ANALYZE`)
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		text string
		in   search.Query
		most int // texts of a driver
		hits int
		rows int64
	}{
		{"a rare word of a user", "rare", search.Query{User: "user0"}, 5_000, 6, 60},
		{"a rare word and a common one", "rare AND common", search.Query{User: "user0"}, 5_000, 6, 60},
		{"a rare word and a common one, everywhere", "rare AND common", search.Query{}, 5_000, 12, 60},
		{"a word of a tenth, by its texts", "tenth", search.Query{User: "user0"}, 5, 150, threads*length + 2*150},
		{"a word of all in one thread", "common", search.Query{Thread: one.ID()}, 5, 50, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			setDriving(c.most, 100)
			counting.rows = 0
			c.in.Text, c.in.Limit = c.text, 1_000
			hits, err := x.Search(background, c.in)
			require.NoError(t, err)
			require.Len(t, hits, c.hits)
			require.Less(t, counting.rows, c.rows)
		})
	}
}

// tourSearch does with a store whatever sends another statement of the index.
func tourSearch(t *testing.T, e, other *Engine) {
	t.Helper()
	s := lineage.New(e)
	x, y := searching(t, s, search.Options{}), searching(t, lineage.New(other), search.Options{})
	find := func(x *search.Index, q search.Query) int {
		t.Helper()
		hits, err := x.Search(background, q)
		require.NoError(t, err)
		return len(hits)
	}
	thread := tell(t, e, "words to search for", "many more words", "an elephant")
	main, err := thread.Active(background)
	require.NoError(t, err)
	_, err = thread.SetCheckpoint(background, "here", lineage.CheckpointOptions{})
	require.NoError(t, err)
	_, err = main.Summarize(background, searchtest.Saying("sum of words"), lineage.SummarizeOptions{})
	require.NoError(t, err)
	among := func() search.Query {
		return search.Query{Text: "word*", Among: s.Threads(background, lineage.ThreadQuery{})}
	}
	require.Equal(t, 3, find(x, among()))
	require.Equal(t, 2, find(x, search.Query{Text: "words", Thread: thread.ID(), Roles: []string{"user"}}))
	require.Equal(t, 1, find(y, search.Query{Text: "words AND many"}))
	require.Zero(t, find(y, search.Query{Text: "many", User: "nobody"}))
	require.NotZero(t, find(y, search.Query{Text: "many OR words OR a* OR said OR more OR for"}))
	require.Equal(t, 1, find(y, search.Query{Text: "many AND (more words)", Thread: thread.ID()}))
	require.Equal(t, 1, find(y, search.Query{Text: "elephant AND (an OR a* OR said OR words OR more OR many)"}))
	defer setDriving(searchindex.MostDriving, searchindex.FewMessages)
	for _, driving := range []int{5_000, 0} {
		setDriving(driving, 0)
		require.Equal(t, 1, find(y, search.Query{Text: "many AND (more words)", Thread: thread.ID()}))
		require.Equal(t, 2, find(x, search.Query{Text: "words", Thread: thread.ID(), Roles: []string{"user"}}))
	}
	require.NoError(t, thread.Update(background, func(i *lineage.ThreadInfo) error { i.Keeps = !i.Keeps; return nil }))
	require.Equal(t, 1, find(y, search.Query{Text: "elephant"}))
	require.NoError(t, thread.DeleteCheckpoint(background, "here"))
	_, err = main.Fork(background, lineage.ForkOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Erase(background, content.Sum([]byte("an elephant"))))
	require.Zero(t, find(x, search.Query{Text: "elephant"}))
	_, err = main.Extend(background, lineage.User("an elephant"))
	require.NoError(t, err)
	require.Equal(t, 2, find(x, search.Query{Text: "elephant"}), "it was stored again")
	gone := tell(t, e, "a walrus")
	require.Equal(t, 1, find(y, search.Query{Text: "walrus"}))
	require.NoError(t, gone.Delete(background))
	require.Zero(t, find(x, search.Query{Text: "walrus"}))
	_, err = e.Collect(background, all)
	require.NoError(t, err)
	require.Equal(t, 2, find(y, search.Query{Text: "elephant"}))

	plain := newPool(t, e.log.pool.Config().ConnString(), nil)
	_, err = plain.Exec(background, `UPDATE lineage_search_text SET id = id || '\x00'; UPDATE lineage_search_usage SET text = text || '\x00'`, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	require.Equal(t, 2, find(y, search.Query{Text: "elephant"}), "it was made again")
	_, err = plain.Exec(background, `UPDATE lineage_search SET format = 0`, exec)
	require.NoError(t, err)
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	searched.WindowLimit = 1
	ctx, cancel := context.WithCancel(background)
	require.ErrorIs(t, searching(t, s, search.Options{Progress: func(uint64, uint64) { cancel() }}).Update(ctx), context.Canceled)
	require.Equal(t, 2, find(y, search.Query{Text: "elephant"}))
}

// searchTables are the tables of the index.
var searchTables = []string{"lineage_search_text", "lineage_search_term", "lineage_search_usage", "lineage_search_run", "lineage_search_tip", "lineage_search_thread"}

// rowsOf counts the rows of a store in the tables of the index.
func rowsOf(t *testing.T, pool *pgxpool.Pool, store string) (n int) {
	t.Helper()
	for _, table := range searchTables {
		var rows int
		require.NoError(t, pool.QueryRow(background, `SELECT count(*) FROM `+table+` WHERE store = $1`, exec, keyOf(store)).Scan(&rows))
		n += rows
	}
	return n
}

func snippets(t *testing.T, x *search.Index, text string) (all []string) {
	t.Helper()
	hits, err := x.Search(background, search.Query{Text: text})
	require.NoError(t, err)
	for _, h := range hits {
		all = append(all, h.Snippet)
	}
	return all
}

// TestSearchWhileOthersWrite has several handles write and search at once: each finds at once what it has written, also
// while another one adds much to the index.
func TestSearchWhileOthersWrite(t *testing.T) {
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	searched.WindowLimit = 1
	pool := newPool(t, pgtest.DSN(t), nil)
	parallel(4, func(i int) {
		s := lineage.New(handle(t, pool, fmt.Sprint("s", i%2))) // two stores
		x := searching(t, s, search.Options{})
		for n := range 4 {
			word := fmt.Sprintf("word%dx%d", i, n)
			thread, err := s.CreateThread(background, lineage.ThreadOptions{UserID: "ada\x00"})
			if err == nil {
				var c *lineage.Context
				if c, err = thread.Active(background); err == nil {
					_, err = c.Extend(background, lineage.User("the "+word), lineage.User("everywhere"))
				}
			}
			var hits []search.Hit
			if err == nil {
				hits, err = x.Search(background, search.Query{Text: word, User: "ada\x00"})
			}
			if err != nil || len(hits) != 1 {
				t.Errorf("%s: %d hits, %v", word, len(hits), err)
			}
		}
	})
	for i := range 2 {
		x := searching(t, lineage.New(handle(t, pool, fmt.Sprint("s", i))), search.Options{})
		hits, err := x.Search(background, search.Query{Text: "everywhere"})
		require.NoError(t, err)
		require.Len(t, hits, 8)
	}
}

// TestSearchForgets removes what is erased from the index, also with a collection, and everything when a process that
// empties the index ends early. Another store in the database keeps what it has.
func TestSearchForgets(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e, sleeper, beside := handle(t, pool, "s"), handle(t, pool, "s"), handle(t, pool, "beside")
	tell(t, e, "the word "+secret, "another word", "the end")
	tell(t, beside, "the word "+secret)
	x, y, z := searching(t, lineage.New(e), search.Options{}), searching(t, lineage.New(sleeper), search.Options{}), searching(t, lineage.New(beside), search.Options{})
	for _, x := range []*search.Index{x, y, z} {
		require.Len(t, snippets(t, x, secret), 1)
	}
	kept := rowsOf(t, pool, "beside")
	terms := func() (all []string) {
		rows, err := pool.Query(background, `SELECT convert_from(term, 'UTF8') FROM lineage_search_term WHERE store = $1 ORDER BY term`, exec, keyOf("s"))
		require.NoError(t, err)
		all, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return all
	}
	was := terms()
	require.NoError(t, lineage.New(e).Erase(background, content.Sum([]byte("the word "+secret))))
	require.Empty(t, snippets(t, y, secret))
	require.Equal(t, []string{"anoth", "end", "the", "word"}, terms(), "of %v", was)
	tell(t, sleeper, "more "+secret)
	require.Len(t, snippets(t, x, secret), 1, "the term has another number")

	require.NoError(t, lineage.New(e).Erase(background, content.Sum([]byte("more "+secret))))
	_, err := e.Collect(background, all)
	require.NoError(t, err)
	require.True(t, isKept(t, e))
	require.Equal(t, []string{"anoth", "end", "the", "word"}, terms())
	require.Equal(t, kept, rowsOf(t, pool, "beside"))
	for _, x := range []*search.Index{y, x} {
		require.Empty(t, snippets(t, x, secret))
		require.Equal(t, []string{"<mark>another</mark> word"}, snippets(t, x, "another"))
	}

	// A process began to empty the index and ended.
	_, err = pool.Exec(background, `UPDATE lineage_search SET clearing = true, version = version + 1 WHERE store = $1`, exec, keyOf("s"))
	require.NoError(t, err)
	require.Equal(t, []string{"<mark>another</mark> word"}, snippets(t, y, "another"))
	require.Len(t, snippets(t, z, secret), 1)
}

// TestSearchOfAnotherHistory makes an index again that does not fit the store, and leaves a newer one alone.
func TestSearchOfAnotherHistory(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	tell(t, e, "one word", "another")
	x := searching(t, lineage.New(e), search.Options{})
	for _, change := range []string{
		`UPDATE lineage_search SET id = id + 1, seen_id = seen_id + 1`, `UPDATE lineage_search SET number = number + 10, seen_number = seen_number + 10`,
		`UPDATE lineage_search SET identity = 'another'`, `UPDATE lineage_search SET format = 0`, `UPDATE lineage_search SET epoch = epoch + 1`,
		`UPDATE lineage_search SET number = 1, id = (SELECT id FROM lineage_log WHERE n = 1); DELETE FROM lineage_search_run`, `DELETE FROM lineage_search`,
	} {
		require.Len(t, snippets(t, x, "word"), 1)
		_, err := pool.Exec(background, change, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
		tell(t, e, "more")
		require.Equal(t, []string{"one <mark>word</mark>"}, snippets(t, x, "word"), change)
		require.NotEmpty(t, snippets(t, x, "more"), change)
	}
	_, err := pool.Exec(background, `UPDATE lineage_search SET format = 1000`, exec)
	require.NoError(t, err)
	_, err = x.Search(background, search.Query{Text: "word"})
	require.ErrorIs(t, err, backend.ErrNewerFormat)
}

// TestSearchWaitsForAnother does not add what another process is adding, until that has ended.
func TestSearchWaitsForAnother(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	tell(t, e, "one word")
	x := searching(t, lineage.New(e), search.Options{})
	require.Len(t, snippets(t, x, "word"), 1)
	tell(t, e, "another word")
	_, err := pool.Exec(background, `UPDATE lineage_search SET busy_until = now() + interval '1 hour'`, exec)
	require.NoError(t, err)
	limited, cancel := context.WithTimeout(background, 200*time.Millisecond)
	defer cancel()
	_, err = x.Search(limited, search.Query{Text: "word"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = pool.Exec(background, `UPDATE lineage_search SET busy_until = now()`, exec)
	require.NoError(t, err)
	require.Len(t, snippets(t, x, "word"), 2)
}

// TestSearchLeavesTheWorkToAnother stops adding when another process has begun to, until that has ended.
func TestSearchLeavesTheWorkToAnother(t *testing.T) {
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	searched.WindowLimit = 1
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	tell(t, e, "one word", "another word", "more", "the end")
	limited, cancel := context.WithCancel(background)
	defer cancel()
	var taken int64
	x := searching(t, lineage.New(e), search.Options{Progress: func(uint64, uint64) {
		if taken == 0 {
			require.NoError(t, pool.QueryRow(background, `UPDATE lineage_search SET version = version + 1, stamp = stamp # 1, owner = owner # 1, busy_until = now() + interval '1 hour' RETURNING version`, exec).Scan(&taken))
			time.AfterFunc(300*time.Millisecond, cancel)
		}
	}})
	_, err := x.Search(limited, search.Query{Text: "word"})
	require.ErrorIs(t, err, context.Canceled)
	var version int64
	require.NoError(t, pool.QueryRow(background, `UPDATE lineage_search SET busy_until = now() RETURNING version`, exec).Scan(&version))
	require.Equal(t, taken, version)
	require.Len(t, snippets(t, x, "word"), 2)
}

// reading returns connections of a role that may only read the tables of a database, which are there.
func reading(t *testing.T, dsn string, admin *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	role := roles(t, admin, "reader")
	_, err := admin.Exec(background, role.Replace(`GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader`), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	return as(t, dsn, role.Replace("reader"))
}

// TestSearchWithoutRights searches what others have added, and says how much that is.
func TestSearchWithoutRights(t *testing.T) {
	dsn := pgtest.DSN(t)
	admin := newPool(t, dsn, nil)
	e := handle(t, admin, "s")
	tell(t, e, "one word")
	behind := uint64(0)
	x := searching(t, lineage.New(handle(t, reading(t, dsn, admin), "s")), search.Options{})
	find := func(q search.Query) []search.Hit {
		t.Helper()
		behind, q.Behind = 0, func(commits uint64, _ error) { behind = commits }
		hits, err := x.Search(background, q)
		require.NoError(t, err)
		return hits
	}
	_, err := x.Search(background, search.Query{Text: "word"})
	require.ErrorIs(t, err, searched.ErrReadOnly, "nobody has made an index")
	require.ErrorIs(t, err, searched.ErrUnsettled)

	mine := searching(t, lineage.New(e), search.Options{})
	require.Len(t, snippets(t, mine, "word"), 1)
	require.Len(t, find(search.Query{Text: "word"}), 1)
	require.Zero(t, behind)
	tell(t, e, "another word")
	require.Len(t, find(search.Query{Text: "word"}), 1)
	require.EqualValues(t, 2, behind)
	require.Len(t, snippets(t, mine, "word"), 2)
	require.Len(t, snippets(t, x, "word"), 2)

	// What the store does not have any more is not found, although the index has it.
	s := lineage.New(e)
	gone, sharing := tell(t, e, "a walrus"), tell(t, e, "a tapir")
	shared, err := sharing.Active(background)
	require.NoError(t, err)
	fork, err := shared.Fork(background, lineage.ForkOptions{})
	require.NoError(t, err)
	alone, err := s.NewContext(background, lineage.ContextOptions{})
	require.NoError(t, err)
	_, err = alone.Extend(background, lineage.User("a numbat"))
	require.NoError(t, err)
	ofUser := func(user string) *lineage.Thread { // which sees the tapir, too
		thread, err := s.CreateThread(background, lineage.ThreadOptions{SourceID: "one", UserID: user})
		require.NoError(t, err)
		_, err = fork.Fork(background, lineage.ForkOptions{Thread: thread.ID()})
		require.NoError(t, err)
		return thread
	}
	again := ofUser("ada")
	sum, err := shared.Summarize(background, searchtest.Saying("of a quokka"), lineage.SummarizeOptions{})
	require.NoError(t, err)
	_, err = fork.Extend(background, lineage.User("a dingo"))
	require.NoError(t, err)
	for _, text := range []string{"walrus", "tapir", "numbat", "quokka", "dingo"} {
		require.Len(t, snippets(t, mine, text), 1)
		require.Len(t, snippets(t, x, text), 1)
	}
	require.NoError(t, gone.Delete(background))
	require.Len(t, find(search.Query{Text: "tapir", User: "ada"}), 1)
	require.NoError(t, again.Delete(background))
	require.Equal(t, again.ID(), ofUser("bob").ID())
	require.NoError(t, alone.Delete(background))
	require.NoError(t, shared.DeleteSummary(background, sum.ID))
	require.NoError(t, s.Erase(background, content.Sum([]byte("another word"))))
	for _, text := range []string{"walrus", "numbat", "quokka", "another"} {
		require.Empty(t, find(search.Query{Text: text}), text)
	}
	require.Empty(t, find(search.Query{Text: "walrus", Thread: gone.ID()}))
	require.Empty(t, find(search.Query{Text: "tapir", User: "ada"}))
	hits := find(search.Query{Text: "tapir"})
	require.Len(t, hits, 1)
	require.Equal(t, []lineage.ThreadID{sharing.ID(), again.ID()}, hits[0].Threads)
	require.NoError(t, again.Delete(background))
	require.NoError(t, fork.Delete(background))
	require.Len(t, find(search.Query{Text: "tapir", Thread: sharing.ID()}), 1)
	require.Empty(t, find(search.Query{Text: "dingo"}))
	require.NotZero(t, behind)
}

// TestSearchBehind changes a store at random. A search that has no time to update the index, and one by a role that may not,
// find nothing that the store does not have any more, and no thread that does not see a message.
//
//test:norace
func TestSearchBehind(t *testing.T) {
	defer campaign.Checks(1)()
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	dsn := pgtest.DSN(t)
	admin := newPool(t, dsn, nil)
	handle(t, admin, "s") // makes the tables
	reader := reading(t, dsn, admin)
	stores := 0
	rapid.Check(t, func(r *rapid.T) {
		stores++
		searched.WindowLimit = rapid.SampledFrom([]int{0, 7, 30}).Draw(r, "window")
		open := func(pool *pgxpool.Pool) *lineage.Store {
			e, err := New(background, pool, Options{Store: fmt.Sprint("s", stores), Unsafe: true})
			require.NoError(r, err)
			return lineage.New(e)
		}
		s := open(admin)
		defer s.Close()
		m := searchtest.NewMachine(r, s)
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			m.Step()
		}
		theirs := open(reader)
		defer theirs.Close()
		mine, x := searching(r, s, search.Options{}), searching(r, theirs, search.Options{})
		m.Unfinished(mine, searching(r, s, search.Options{}))
		m.Check(x)
		for m.Behind = true; rapid.IntRange(0, 9).Draw(r, "more") > 0; {
			m.Step()
		}
		m.Check(x)
	})
}
