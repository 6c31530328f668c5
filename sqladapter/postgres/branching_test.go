package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/sqladapter/sqltest"
)

// TestBranchingReadsFewRows makes branches in a long chat: no chain is counted, so a few messages are read.
//
// feature: storage/branching
func TestBranchingReadsFewRows(t *testing.T) {
	p := place{pgtest.DSN(t), false}
	b := sqltest.Branching{Config: config(t, false), Place: p, Chat: "c", Messages: 3_000, Branches: 3}
	b.Make(t)
	conn, err := pgx.Connect(background, p.dsn)
	require.NoError(t, err)
	defer conn.Close(background)
	before := rowsRead(t, conn)
	b.Do(t)
	require.Less(t, rowsRead(t, conn)-before, int64(100))
}

// rowsRead returns how many rows of messages, and of what is known of them, were read by connections that have
// ended.
func rowsRead(t *testing.T, conn *pgx.Conn) (rows int64) {
	pagesRead(t, conn) // waits for the others
	err := conn.QueryRow(background, `SELECT SUM(seq_tup_read + idx_tup_fetch)::bigint FROM pg_stat_user_tables
		WHERE relname IN ('messages', 'lineage_messages')`).Scan(&rows)
	require.NoError(t, err)
	return rows
}
