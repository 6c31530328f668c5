package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Sessions that were not used for long are forgotten, by the clock of the server, also by another process. Their clients
// get ErrUncertain.
func TestSessionsAge(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	a, b := handle(t, pool, "s"), handle(t, pool, "s")
	request := func(e *Engine, session byte, sequence uint64) error {
		_, c := threadCommit()
		head, err := e.Head(background)
		require.NoError(t, err)
		_, err = e.Apply(background, c, backend.Options{Once: &backend.Once{Session: [16]byte{session}, Since: head, Sequence: sequence}})
		createThread(t, e, backend.Normal) // so that none begins at an even number
		return err
	}
	sessions := func(e *Engine) (ids []byte) {
		at, err := e.latest(background, need{})
		require.NoError(t, err)
		all, err := sessionsOf(at)
		require.NoError(t, err)
		for key, s := range all {
			require.InDelta(t, time.Now().Unix(), s.used, 3600)
			ids = append(ids, key[len(keys.Of(keys.TableRequests))])
		}
		return ids
	}
	old := func(session byte) { // as if it had been used earlier
		at, err := a.latest(background, need{})
		require.NoError(t, err)
		s, known, err := sessionOf(at, [16]byte{session})
		require.NoError(t, err)
		require.True(t, known)
		s.used -= uint64(entries.SessionAge/time.Second) + 1
		id := [16]byte{session}
		_, err = pool.Exec(background, `UPDATE lineage_entry SET value = $1 WHERE key = $2 AND value IS NOT NULL`, exec, s.encode(), keys.Of(keys.TableRequests, id[:]))
		require.NoError(t, err)
	}
	require.NoError(t, request(a, 1, 1))
	require.NoError(t, request(a, 2, 1))
	require.NoError(t, request(b, 3, 1))
	old(1)
	old(3)
	for session := byte(4); session < 4+forgetEvery; session++ {
		require.NoError(t, request(b, session, 1))
	}
	require.NotContains(t, sessions(a), byte(1))
	require.NotContains(t, sessions(b), byte(3))
	require.Contains(t, sessions(b), byte(2))
	require.Len(t, sessions(a), 1+forgetEvery)
	require.NoError(t, request(a, 2, 2))
	_, err := a.Outcome(background, backend.Once{Session: [16]byte{1}, Sequence: 1})
	require.ErrorIs(t, err, backend.ErrUncertain)
	requireSound(t, b)
}

// A session is forgotten while a batch with its next request may have been written: the request is judged again.
func TestForgottenMeanwhile(t *testing.T) {
	dsn, after := pgtest.DSN(t), &afterBatch{afterQuery{func() {}}}
	e := handle(t, newPool(t, dsn, func(c *pgxpool.Config) {
		c.ConnConfig.Tracer, c.ConnConfig.RuntimeParams["application_name"] = after, "victim"
	}), "s")
	witnesses := newPool(t, dsn, nil)
	other := handle(t, witnesses, "s")
	session := [16]byte{1}
	request := func(sequence uint64) *pending {
		_, c := threadCommit()
		return &pending{ctx: background, commit: c, o: backend.Options{Once: &backend.Once{Session: session, Sequence: sequence}}, done: make(chan struct{})}
	}
	first := request(1)
	require.Empty(t, e.commitAndWait([]*pending{first}))
	require.NoError(t, first.err)
	contend(e)
	after.do = func() {
		after.do = func() {}
		_, err := witnesses.Exec(background, `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'victim' AND datname = current_database()`, exec)
		require.NoError(t, err)
		require.NoError(t, other.Forget(background, session))
	}
	second := request(2)
	require.Empty(t, e.commitAndWait([]*pending{second}))
	require.ErrorIs(t, second.err, backend.ErrUncertain)
	_, err := other.Outcome(background, backend.Once{Session: session, Sequence: 1})
	require.ErrorIs(t, err, backend.ErrUncertain)
	require.Len(t, history(t, other), 1)
	requireSound(t, e)
}

// The clock goes on while the machine sleeps, and never back.
func TestClock(t *testing.T) {
	var c clock
	c.set(1000)
	require.NotContains(t, c.at.String(), "m=", "the monotonic clock")
	c.at = c.at.Add(-time.Hour)
	require.InDelta(t, 1000+3600, c.now(), 60)
	c.at = c.at.Add(2 * time.Hour)
	require.EqualValues(t, 1000, c.now())
}
