package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/sqladapter"
)

// TestFollowStandby follows the log of a standby, as usage and projections do: what it has is durable. It cannot be written to.
func TestFollowStandby(t *testing.T) {
	campaign.Long(t)
	first, second, pool := pair(t)
	e := handle(t, pool, "s")
	createThread(t, e, backend.Full)
	onStandby := newPool(t, second.DSN("postgres"), nil)
	eventually(t, onStandby, `SELECT count(*) = 1 FROM lineage_log`)
	readers := []*Engine{handle(t, onStandby, "s"), handle(t, newPool(t, second.DSN("postgres"), nil), "s")}
	for n := 1; n <= 3; n++ {
		for _, r := range readers {
			require.Len(t, history(t, r), n)
			at, err := r.Wait(background, backend.Cursor{Number: uint64(n - 1)})
			require.NoError(t, err)
			require.EqualValues(t, n, at.Number)
			require.NoError(t, r.Sync(background))
		}
		createThread(t, e, backend.Full)
		for _, r := range readers {
			_, err := r.Wait(background, backend.Cursor{Number: uint64(n)})
			require.NoError(t, err)
		}
	}
	_, commit := threadCommit()
	_, err := readers[0].Apply(background, commit, backend.Options{})
	require.ErrorIs(t, err, sqladapter.ErrDenied)

	require.NoError(t, first.Stop(true))
	_, err = onStandby.Exec(background, `SELECT pg_promote()`, exec)
	require.NoError(t, err)
	createThread(t, readers[0], backend.Full)
	require.Len(t, history(t, readers[1]), 5)
}

// TestReaderIsDenied has a role that may only read, and one whose transactions only read. Both read the store. That they may
// not write, or confirm that commits are durable, has a meaning that programs can test for.
func TestReaderIsDenied(t *testing.T) {
	dsn := pgtest.DSN(t)
	admin := newPool(t, dsn, nil)
	e := handle(t, admin, "s")
	thread := tell(t, e, "said")
	readOnly := newPool(t, dsn, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on" })
	for name, r := range map[string]*Engine{"role": handle(t, reading(t, dsn, admin), "s"), "transactions": handle(t, readOnly, "s")} {
		t.Run(name, func(t *testing.T) {
			requireSaid(t, r, thread, "said")
			_, commit := threadCommit()
			_, err := r.Apply(background, commit, backend.Options{})
			require.ErrorIs(t, err, sqladapter.ErrDenied)
			require.ErrorIs(t, r.Sync(background), sqladapter.ErrDenied)
			_, err = r.Wait(background, backend.Cursor{})
			require.ErrorIs(t, err, sqladapter.ErrDenied)
			for _, err := range r.Feed(background, backend.Cursor{}) {
				require.ErrorIs(t, err, sqladapter.ErrDenied)
			}
			requireSaid(t, r, thread, "said")
		})
	}
	requireSound(t, e)
}
