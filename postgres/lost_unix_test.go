//go:build unix

package postgres

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
)

// TestLostByTheServer has the server lose commits of normal durability, and another process take
// their numbers, while a handle knows them: it reads, extends and follows the history that is there.
func TestLostByTheServer(t *testing.T) {
	campaign.Long(t)
	c := pgtest.Own(t, "autovacuum=off", "bgwriter_lru_maxpages=0")
	pool, others := newPool(t, c.DSN("postgres"), nil), newPool(t, c.DSN("postgres"), nil)
	old := handle(t, pool, "s")
	run := beginCounter(t, old)
	// This process of the server would make commits durable.
	var writer int
	require.NoError(t, pool.QueryRow(background, `SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'`, exec).Scan(&writer))
	require.NoError(t, syscall.Kill(writer, syscall.SIGSTOP))
	_, err := run.add(background, old, backend.Normal)
	require.NoError(t, err)
	gone, lost := createThread(t, old, backend.Normal)
	require.NoError(t, syscall.Kill(writer, syscall.SIGKILL)) // while it is stopped, the server waits for it
	require.NoError(t, c.Stop(true))
	require.NoError(t, c.Run())
	other := handle(t, others, "s")
	head, err := other.Head(background)
	require.NoError(t, err)
	require.Less(t, head.Number, lost.Number, "the server lost commits")
	for head.Number < lost.Number {
		_, head = createThread(t, other, backend.Full)
	}
	require.NotEqual(t, lost.ID, head.ID)
	_, err = old.Wait(background, lost)
	require.ErrorIs(t, err, backend.ErrDiverged)
	_, err = old.Thread(background, gone)
	require.ErrorIs(t, err, backend.ErrNotFound)
	seq, err := run.add(background, old, backend.Full)
	require.NoError(t, err)
	require.EqualValues(t, 1, seq, "the lost span is no part of the run")
	require.Equal(t, history(t, other), history(t, old))
	requireSound(t, old)
}
