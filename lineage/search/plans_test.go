package search

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
)

// What is asked of few threads, texts or runs does not read all of them.
func TestStatementsUseIndexes(t *testing.T) {
	ctx := context.Background()
	store, err := lineage.OpenMemory(ctx, lineage.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	x, err := Open(ctx, store, t.TempDir(), Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	thread := lineage.ThreadID{1}
	statements := []string{derivedfile.RunsOfThread, usageKeys.Next, textKeys.Next}
	for _, s := range []searched.Scope{{Thread: thread}, {User: "ada"}, {Listed: true}} {
		statements = append(statements, runsInScope(&s))
	}
	require.NoError(t, x.index.(*fileIndex).file.With(func(db *sql.DB) error {
		conn, err := db.Conn(ctx)
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.ExecContext(ctx, `CREATE TEMP TABLE among (id BLOB PRIMARY KEY) WITHOUT ROWID`)
		require.NoError(t, err)
		for _, statement := range statements {
			rows := 0
			require.NoError(t, derivedfile.Each(ctx, conn, func(scan func(...any) error) error {
				var id, parent, unused int
				var detail string
				err := scan(&id, &parent, &unused, &detail)
				rows++
				if strings.HasPrefix(detail, "SCAN ") {
					require.Contains(t, []string{"SCAN seen", "SCAN (subquery-1)"}, detail, statement)
				}
				return err
			}, `EXPLAIN QUERY PLAN `+statement, 1, 2, 3))
			require.NotZero(t, rows)
		}
		return nil
	}))
}
