package postgres

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
)

// TestReplicaDirectory keeps the replica in a directory, where the user also has a store: what is
// there already is not read again, damage and commits that the server lost are replaced, and the
// user's store stays.
func TestReplicaDirectory(t *testing.T) {
	dsn := pgtest.DSN(t)
	other := handle(t, newPool(t, dsn, nil), "s")
	dir := t.TempDir()
	mine, err := embedded.Open(background, dir, embedded.Options{})
	require.NoError(t, err)
	_, c := threadCommit()
	_, err = mine.Apply(background, c, backend.Options{})
	require.NoError(t, err)
	require.NoError(t, mine.Close())

	var read []int64
	open := func() *Engine {
		read = nil
		e, err := Open(background, dsn, Options{Store: "s", Unsafe: true, Replica: dir, Progress: func(done, _ int64) { read = append(read, done) }})
		require.NoError(t, err)
		return e
	}
	createThread(t, other, backend.Full)
	e := open()
	require.NotEmpty(t, read)
	_, err = Open(background, dsn, Options{Store: "s", Unsafe: true, Replica: dir})
	require.ErrorIs(t, err, backend.ErrLocked)
	createThread(t, e, backend.Full)
	require.NoError(t, e.Close())
	createThread(t, other, backend.Full)
	e = open()
	require.Empty(t, read, "what is there is not read again")
	require.Equal(t, history(t, other), history(t, e))
	_, lost := createThread(t, e, backend.Normal)
	require.NoError(t, e.Close())

	_, err = other.log.pool.Exec(background, `DELETE FROM lineage_log WHERE n = $1`, exec, int64(lost.Number))
	require.NoError(t, err)
	createThread(t, other, backend.Full)
	e = open()
	require.Equal(t, history(t, other), history(t, e))
	require.NoError(t, e.Close())

	segments, err := filepath.Glob(filepath.Join(dir, "replica-*", "journal", "*.seg"))
	require.NoError(t, err)
	require.NotEmpty(t, segments)
	for _, damage := range [][]byte{nil, []byte("not a segment"), make([]byte, 4096)} {
		require.NoError(t, os.WriteFile(segments[0], damage, 0o600))
		e = open()
		require.Equal(t, history(t, other), history(t, e))
		require.NoError(t, e.Close())
	}

	mine, err = embedded.Open(background, dir, embedded.Options{MustExist: true})
	require.NoError(t, err)
	head, err := mine.Head(background)
	require.NoError(t, err)
	require.EqualValues(t, 1, head.Number)
	require.NoError(t, mine.Close())
}
