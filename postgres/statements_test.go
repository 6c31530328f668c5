package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// observer sees every statement that is sent, and finds those that the server does not limit: each transaction has to
// begin with its limits.
type observer struct {
	mu        sync.Mutex
	seen      map[string][]any // the arguments of each statement, the largest that were seen
	unlimited []string
}

func (o *observer) note(sql string, args []any) {
	if was, known := o.seen[sql]; !known || len(fmt.Sprint(args...)) > len(fmt.Sprint(was...)) {
		o.seen[sql] = args
	}
}

func (o *observer) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	o.mu.Lock()
	defer o.mu.Unlock()
	queries := data.Batch.QueuedQueries
	if conn.PgConn().TxStatus() == 'I' {
		limited := len(queries) > 1 && strings.HasPrefix(queries[0].SQL, "BEGIN ISOLATION LEVEL ") && strings.HasPrefix(queries[1].SQL, limitsSQL)
		for i := 0; limited && i < 3; i++ {
			n, err := strconv.Atoi(queries[1].Arguments[i].(string))
			limited = err == nil && n > 0
		}
		if !limited {
			o.unlimited = append(o.unlimited, queries[0].SQL)
		}
	}
	for _, q := range queries {
		o.note(q.SQL, q.Arguments)
	}
	return ctx
}
func (*observer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*observer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// TraceQueryStart sees statements alone: those that create the tables, in a transaction, and its end.
func (o *observer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !strings.HasPrefix(strings.ToUpper(data.SQL), "BEGIN ") && conn.PgConn().TxStatus() == 'I' {
		o.unlimited = append(o.unlimited, data.SQL)
	}
	o.note(data.SQL, data.Args)
	return ctx
}
func (*observer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// tour does with a store whatever sends another statement.
func tour(t *testing.T, pool *pgxpool.Pool) *Engine {
	t.Helper()
	former := formerTime
	formerTime = 0
	defer func() { formerTime = former }()
	e, other := handle(t, pool, "s"), handle(t, pool, "s")
	texts := make([]string, 40)
	for i := range texts {
		texts[i] = fmt.Sprint("said ", i)
	}
	thread := tell(t, e, texts...)
	s := lineage.New(e)
	main, err := thread.Active(background)
	require.NoError(t, err)
	for range 3 {
		_, err = main.Fork(background, lineage.ForkOptions{})
		require.NoError(t, err)
		createThread(t, other, backend.Full)
	}
	for i := range uint64(2 * forgetEvery) { // requests
		_, c := threadCommit()
		once := &backend.Once{Session: [16]byte{1 + byte(i/2)}, Sequence: i%2 + 1}
		_, err := e.Apply(background, c, backend.Options{Once: once})
		require.NoError(t, err)
		_, err = other.Outcome(background, *once)
		require.NoError(t, err)
	}
	require.NoError(t, e.Forget(background, [16]byte{1}))
	for _, reader := range []*Engine{e, other} {
		requireSaid(t, reader, thread, texts...)
	}
	tip, err := main.Tip(background)
	require.NoError(t, err)
	_, err = other.Last(background, tip.Run)
	require.NoError(t, err)
	for _, oldest := range []bool{false, true} {
		drain(t, e.ListThreads(background, backend.ThreadQuery{Oldest: oldest}))
	}
	_, err = other.Wait(background, backend.Cursor{})
	require.NoError(t, err)
	history(t, other)
	head, err := e.Head(background)
	require.NoError(t, err)
	_, err = other.Wait(background, backend.Cursor{Number: head.Number, ID: head.ID + 1})
	require.ErrorIs(t, err, backend.ErrDiverged)
	require.NoError(t, other.Sync(background))

	require.NoError(t, tell(t, e, secret).Delete(background))
	require.NoError(t, s.Erase(background, content.Sum([]byte("said 1"))))
	require.NoError(t, e.log.prune(background, e.head.epoch))
	requireSound(t, e)
	_, err = e.Stats(background)
	require.NoError(t, err)
	_, err = e.Collect(background, all)
	require.NoError(t, err)
	_, err = e.log.settledEpoch(background, e.head)
	require.NoError(t, err)
	require.NoError(t, e.log.dropEpoch(background, 1, e.log.undecided(1)), "as after a collection that failed")
	requireSound(t, e)
	_, err = e.log.onStandby(background, e.head, backend.ErrReadOnly)
	require.ErrorIs(t, err, backend.ErrReadOnly, "it is no standby")
	require.ErrorIs(t, e.log.checkCursorOnce(background, backend.Cursor{Number: e.head.Number + 1, ID: e.head.ID}), backend.ErrDiverged)
	tourSearch(t, e, other)
	extension(t, newPool(t, pool.Config().ConnString(), nil))
	require.NoError(t, safely(t, pool, Options{Store: "s", Distribute: true}))
	return e
}

func drain[T any](t testing.TB, all iter.Seq2[T, error]) (n int) {
	t.Helper()
	for _, err := range all {
		require.NoError(t, err)
		n++
	}
	return n
}

// wholeStore are statements on all rows of a store or an epoch.
var wholeStore = regexp.MustCompile(`sum\(pg_column_size|max\(n \+ count|\(SELECT n FROM lineage_head .*\) = 0$`)

// TestStatements walks through all statements of the package. Each has a limit on the server from the start, and reads
// no table from start to end, whether or not the server has statistics.
func TestStatements(t *testing.T) {
	o := &observer{seen: make(map[string][]any)}
	pool := newPool(t, pgtest.DSN(t), func(c *pgxpool.Config) { c.ConnConfig.Tracer = o })
	e := tour(t, pool)
	require.Empty(t, o.unlimited)
	var known strings.Builder
	for sql := range o.seen {
		known.WriteString(sql)
	}
	for _, sql := range statementsOf(t) {
		require.True(t, strings.Contains(known.String(), sql), "the tour does not come there: %s", sql)
	}

	plain := newPool(t, pool.Config().ConnString(), nil)
	do := func(sql string, args ...any) {
		_, err := plain.Exec(background, sql, args...)
		require.NoError(t, err, sql)
	}
	for _, store := range [][]byte{e.log.store, keyOf("another")} { // in the epoch that the arguments name, and beside it
		do(`INSERT INTO lineage_log SELECT $1, 1000 + i, 1, i, '', 0 FROM generate_series(1, 10000) i`, store)
		do(`INSERT INTO lineage_entry (store, epoch, key, age, value) SELECT $1, (SELECT epoch FROM lineage_store), convert_to('~' || i, 'UTF8'), -i, '' FROM generate_series(1, 20000) i`, store)
		do(`INSERT INTO lineage_search_text SELECT $1, int8send(i), ARRAY[i, i % 1000, 1] FROM generate_series(1, 20000) i`, store)
		do(`INSERT INTO lineage_search_term SELECT $1, int8send(i), i FROM generate_series(1, 20000) i`, store)
		do(`INSERT INTO lineage_search_usage SELECT $1, 1000 + i / 10, i % 10, 0, 1, int8send(i), 'user' FROM generate_series(1, 20000) i`, store)
		do(`INSERT INTO lineage_search_run SELECT $1, 1000 + i, int8send(i), 999 + i, 1, int8send(i / 10), 10, 10 FROM generate_series(1, 20000) i`, store)
		do(`INSERT INTO lineage_search_tip SELECT $1, int8send(i), int8send(i / 10), 1000 + i, 5, CASE WHEN i % 10 = 0 THEN int8send(i) END FROM generate_series(1, 20000) i`, store)
		do(`INSERT INTO lineage_search_thread SELECT $1, int8send(i), i, int8send(i / 10), i % 10 = 0 FROM generate_series(1, 20000) i`, store)
		do(`INSERT INTO lineage_former SELECT $1, (SELECT epoch FROM lineage_store), 1000 + i, 0, '{}' FROM generate_series(1, 10000) i`, store)
	}
	for _, statistics := range []bool{false, true} {
		if statistics {
			do(`ANALYZE`)
		}
		for sql, args := range o.seen {
			if !regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|WITH)\b`).MatchString(sql) || !strings.Contains(sql, "lineage_") || wholeStore.MatchString(sql) {
				continue
			}
			var plan []byte
			tx, err := plain.Begin(background)
			require.NoError(t, err)
			if strings.Contains(sql, "lineage_search") {
				_, err = tx.Exec(background, plansSQL)
				require.NoError(t, err)
			}
			require.NoError(t, tx.QueryRow(background, `EXPLAIN (FORMAT JSON) `+sql, args...).Scan(&plan), sql)
			require.NoError(t, tx.Rollback(background))
			var node any
			require.NoError(t, json.Unmarshal(plan, &node))
			requireIndexed(t, node, fmt.Sprintf("statistics %v: %s\n%v\n%s", statistics, sql, args, plan))
		}
	}
}

// requireIndexed checks that a plan reads none of the large tables from start to end.
func requireIndexed(t *testing.T, node any, about string) {
	t.Helper()
	switch node := node.(type) {
	case []any:
		for _, n := range node {
			requireIndexed(t, n, about)
		}
	case map[string]any:
		if node["Node Type"] == "Seq Scan" {
			require.NotContains(t, []string{
				"lineage_log", "lineage_entry", "lineage_former", "lineage_search_text", "lineage_search_term", "lineage_search_usage", "lineage_search_run",
				"lineage_search_tip", "lineage_search_thread",
			}, node["Relation Name"], about)
		}
		for _, n := range node {
			requireIndexed(t, n, about)
		}
	}
}

// searchFolder has the statements of the search index.
const searchFolder = "internal/searchindex"

// sources returns the files of the package and of those below it, without tests.
func sources(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return err
	})
	require.NoError(t, err)
	return files
}

// literals returns the strings of a file, except those of a variable.
func literals(t *testing.T, file, except string) (all []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && spec.Names[0].Name == except {
			return false
		}
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		require.NoError(t, err)
		all = append(all, text)
		return true
	})
	return all
}

// statementsOf returns the statements on tables of stores in the source, except those of migrations.
func statementsOf(t *testing.T) (all []string) {
	t.Helper()
	for _, file := range sources(t) {
		for _, text := range literals(t, file, "migrations") {
			if regexp.MustCompile(`(?s)\b(FROM|INTO|UPDATE) +lineage_`).MatchString(text) {
				all = append(all, text)
			}
		}
	}
	require.Greater(t, len(all), 25)
	return all
}
