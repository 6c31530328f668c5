package projecttest

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/project"
)

// Bench projects messages into an empty database and, interleaved, inserts the same rows with
// prepared multi-row statements: those of the documented tables and, for a whole projection, those
// of content and structure. It reports messages per second for both. placeholder returns parameter
// n of a statement.
func Bench(b *testing.B, config Config, placeholder func(n int) string) {
	s := &suite{config}
	n := campaign.BenchMessages(b, 100_000)
	store, err := lineage.Open(bg, b.TempDir(), lineage.Options{Durability: lineage.Normal})
	require.NoError(b, err)
	defer store.Close()
	fill(b, store, n)
	b.Run("Chats", func(b *testing.B) { s.bench(b, store, n, true, tables, placeholder) })
	b.Run("Whole", func(b *testing.B) {
		s.bench(b, store, n, false, append([]string{"users", "content_blocks", "span_sets", "spans", "message_usages", "contexts"}, tables...), placeholder)
	})
}

// fill adds n different messages, in chats of 1000.
func fill(b *testing.B, store *lineage.Store, n int) {
	chats, text := chat.On(store), strings.Repeat("some words that were said at length, ", 11)
	for i := 0; i < n; i += 1000 {
		messages := make([]chat.Message, min(1000, n-i))
		for k := range messages {
			messages[k] = say(fmt.Sprintf("message-%d", i+k), fmt.Sprintf("%s number %d", text, i+k))
		}
		converse(b, chats, fmt.Sprintf("chat-%d", i), messages...)
	}
}

func (s *suite) bench(b *testing.B, store *lineage.Store, n int, chatsOnly bool, list []string, placeholder func(int) string) {
	var projecting, inserting time.Duration
	for b.Loop() {
		database := s.New(b)
		db := s.open(b, database)
		began := time.Now()
		_, err := (&project.Projector{Store: store, DB: db, ChatsOnly: chatsOnly}).Run(bg)
		projecting += time.Since(began)
		require.NoError(b, err)
		require.NoError(b, db.Close())

		other := s.New(b)
		db = s.open(b, other)
		empty := newStore(b)
		_, err = (&project.Projector{Store: empty, DB: db, ChatsOnly: chatsOnly}).Run(bg) // creates the tables
		require.NoError(b, err)
		require.NoError(b, db.Close())
		for _, table := range list {
			inserting += insertSame(b, database.SQL, other.SQL, table, placeholder)
		}
	}
	perSecond := func(d time.Duration) float64 { return float64(n) * float64(b.N) / d.Seconds() }
	b.ReportMetric(perSecond(projecting), "projected/s")
	b.ReportMetric(perSecond(inserting), "inserted/s")
	b.ReportMetric(projecting.Seconds()/inserting.Seconds(), "ratio")
}

// insertSame copies a table and returns the time for inserting.
func insertSame(b *testing.B, from, to *sql.DB, table string, placeholder func(int) string) time.Duration {
	const batch = 100
	rows, err := from.QueryContext(bg, `SELECT * FROM "`+table+`"`)
	require.NoError(b, err)
	defer rows.Close()
	all, err := rows.Columns()
	require.NoError(b, err)
	columns := make([]string, 0, len(all))
	for _, c := range all {
		if c != "content_vector" {
			columns = append(columns, `"`+c+`"`)
		}
	}
	statement := func(n int) string {
		var sql strings.Builder
		fmt.Fprintf(&sql, `INSERT INTO "%s" (%s) VALUES `, table, strings.Join(columns, ", "))
		for i := range n {
			values := make([]string, len(columns))
			for k := range values {
				values[k] = placeholder(i*len(columns) + k + 1)
			}
			fmt.Fprintf(&sql, "%s(%s)", map[bool]string{true: ", "}[i > 0], strings.Join(values, ", "))
		}
		return sql.String()
	}
	var held [][]any
	for rows.Next() {
		values, into := make([]any, len(all)), make([]any, len(all))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(b, rows.Scan(into...))
		held = append(held, values[:len(columns)])
	}
	require.NoError(b, rows.Err())

	began := time.Now()
	tx, err := to.BeginTx(bg, nil)
	require.NoError(b, err)
	prepared, err := tx.PrepareContext(bg, statement(batch))
	require.NoError(b, err)
	for len(held) > 0 {
		n := min(batch, len(held))
		var args []any
		for _, row := range held[:n] {
			args = append(args, row...)
		}
		if n == batch {
			_, err = prepared.ExecContext(bg, args...)
		} else {
			_, err = tx.ExecContext(bg, statement(n), args...)
		}
		require.NoError(b, err)
		held = held[n:]
	}
	require.NoError(b, tx.Commit())
	return time.Since(began)
}
