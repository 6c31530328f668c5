package usage

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/lineage"
)

// What is asked of few threads or runs does not read all of them.
func TestStatementsUseIndexes(t *testing.T) {
	ctx := context.Background()
	store, err := lineage.OpenMemory(ctx, lineage.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	x, err := Open(ctx, store, t.TempDir(), Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	statements := []string{deleteAbout, below + `SELECT run FROM below`, threadNumber, fmt.Sprintf(inScope, `VALUES (?)`, int64(derivedfile.Forever)) + ` SELECT run FROM visible`}
	require.NoError(t, x.file.With(func(db *sql.DB) error {
		for _, statement := range statements {
			rows := 0
			require.NoError(t, each(ctx, db, func(scan func(...any) error) error {
				var id, parent, unused int
				var detail string
				err := scan(&id, &parent, &unused, &detail)
				rows++
				if strings.HasPrefix(detail, "SCAN ") {
					require.Contains(t, []string{"SCAN below", "SCAN b", "SCAN scope", "SCAN seen", "SCAN s", "SCAN visible", "SCAN CONSTANT ROW", "SCAN 2-ROW VALUES CLAUSE"}, detail, statement)
				}
				return err
			}, `EXPLAIN QUERY PLAN `+statement, 1))
			require.NotZero(t, rows)
		}
		return nil
	}))
}
