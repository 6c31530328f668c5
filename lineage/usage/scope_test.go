package usage

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/structure"
)

// A report on some threads finds their branches and runs by index, and lists the threads once.
func TestScopeIsReadByIndex(t *testing.T) {
	ctx := t.Context()
	x, err := Open(ctx, lineagetest.New(t, lineage.Options{}), t.TempDir(), Options{})
	require.NoError(t, err)
	defer x.Close()
	require.NoError(t, x.Update(ctx))
	require.NoError(t, x.file.With(func(db *sql.DB) error {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer tx.Rollback()
		r := &reporter{tx: tx, q: &Query{CountedIn: []structure.ThreadID{}}, attributions: newAttributions(tx)}
		with, where, args, err := r.candidates(ctx)
		if err != nil {
			return err
		}
		var plan []string
		err = each(ctx, tx, func(scan func(...any) error) error {
			var id, parent, unused int
			var step string
			err := scan(&id, &parent, &unused, &step)
			plan = append(plan, step)
			return err
		}, `EXPLAIN QUERY PLAN `+with+`SELECT run FROM totals WHERE quarter >= 0`+where, args...)
		text := strings.Join(plan, "\n")
		require.Equal(t, 1, strings.Count(text, "SCAN json_each"), text)
		require.Equal(t, 1, strings.Count(text, "SEARCH p USING INDEX tips_thread (thread=?)"), text)
		require.Equal(t, 2, strings.Count(text, "SEARCH r USING COVERING INDEX runs_of (thread=?)"), text)
		return err
	}))
}
