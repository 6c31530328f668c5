package projecttest

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// testQueries runs the queries of docs/sql.md, as they are there.
func testQueries(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	if name := db.Dialect().Name(); name != "sqlite" && name != "postgres" {
		t.Skip("the queries are for SQLite and Postgres")
	}
	var forks [][]string
	for _, o := range []lineage.ThreadOptions{
		{SourceID: "trip", UserID: "ada", Title: "A trip"}, {SourceID: "later", UserID: "ada", Title: "Later"}, {SourceID: "other", UserID: "bob"},
	} {
		thread, err := store.CreateThread(bg, o)
		require.NoError(t, err)
		main, err := thread.Active(bg)
		require.NoError(t, err)
		answer := lineage.Assistant("At Zé, or 語.")
		answer.Origin.ModelID, answer.SourceID = "small-1", "a"
		answer.Metadata = []byte(`{"usage":{"input_tokens":90,"output_tokens":10}}`)
		question, more := lineage.User("Where?"), lineage.User("And then?")
		question.SourceID, more.SourceID = "q", "m"
		if o.SourceID != "trip" {
			question.SourceID, answer.SourceID, more.SourceID = "q-"+o.SourceID, "a-"+o.SourceID, "m-"+o.SourceID
		}
		if o.SourceID == "later" {
			more.CreatedAt = time.Now().Add(time.Hour)
		}
		spans, err := main.Extend(bg, question, answer, more)
		require.NoError(t, err)
		if o.SourceID == "trip" {
			cheap, err := thread.CreateBranch(bg, "cheap", lineage.BranchOptions{At: spans[0]})
			require.NoError(t, err)
			other := lineage.Assistant("At home.")
			other.Origin.ModelID, other.SourceID = "large-2", "h"
			_, err = cheap.Extend(bg, other)
			require.NoError(t, err)
			fork, err := cheap.Fork(bg, lineage.ForkOptions{}) // without a name
			require.NoError(t, err)
			tip, err := cheap.Tip(bg)
			require.NoError(t, err)
			forks = [][]string{{cheap.ID().String(), "cheap", spans[0].String(), "main"}, {fork.ID().String(), "NULL", tip.String(), "cheap"}}
		} else if o.SourceID == "other" { // shares a history, which counts once
			shared, err := store.FindThread(bg, "trip")
			require.NoError(t, err)
			from, err := shared.Active(bg)
			require.NoError(t, err)
			_, err = from.Fork(bg, lineage.ForkOptions{Thread: thread.ID()})
			require.NoError(t, err)
		}
	}
	s.project(t, store, db)

	queries := documented(t, "### Queries")
	require.Len(t, queries, 6)
	read := func(i int, columns ...int) (rows [][]string) {
		all := table(t, database.SQL, queries[i])
		require.NotEmpty(t, all)
		for _, row := range all {
			var some []string
			for _, c := range columns {
				some = append(some, row[c])
			}
			rows = append(rows, some)
		}
		return rows
	}
	require.Equal(t, [][]string{{"later", "Later"}, {"trip", "A trip"}}, read(0, 0, 1))
	require.Equal(t, [][]string{{"q", "user"}, {"a", "assistant"}, {"m", "user"}}, read(1, 0, 1))
	require.Equal(t, [][]string{{"q", "2"}}, read(2, 0, 1))
	require.Equal(t, forks, read(3, 0, 1, 2, 3))
	cost := 4
	if db.Dialect().Name() == "postgres" {
		cost = 5
	}
	require.Equal(t, [][]string{{"large-2", "1", "NULL", "NULL"}, {"small-1", "3", "270", "30"}}, read(cost, 0, 1, 2, 3))
}

// documented returns the SQL blocks of a section of docs/sql.md.
func documented(t *testing.T, heading string) (blocks []string) {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "docs", "sql.md")); err == nil {
			break
		}
		require.NotEqual(t, dir, filepath.Dir(dir), "docs/sql.md is not above")
		dir = filepath.Dir(dir)
	}
	text, err := os.ReadFile(filepath.Join(dir, "docs", "sql.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n### ")
	for _, block := range strings.Split(section, "```sql\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

// table returns the rows of a query as text.
func table(t *testing.T, db *sql.DB, query string) (all [][]string) {
	t.Helper()
	rows, err := db.QueryContext(bg, query)
	require.NoError(t, err, query)
	defer rows.Close()
	columns, err := rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		row, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		require.NoError(t, rows.Scan(into...))
		texts := make([]string, len(row))
		for i, v := range row {
			if texts[i] = v.String; !v.Valid {
				texts[i] = "NULL"
			}
		}
		all = append(all, texts)
	}
	require.NoError(t, rows.Err())
	return all
}
