package pgcluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
)

// started starts a cluster, or skips where there is no PostgreSQL. With CI=true
// there has to be one.
func started(t *testing.T, o Options) *Cluster {
	campaign.Long(t)
	if _, err := binaries(); err != nil && os.Getenv("CI") != "true" {
		t.Skipf("NOT TESTED AGAINST POSTGRES: %v", err)
	}
	c, err := Start(o)
	require.NoError(t, err)
	return c
}

func TestSettingsAndClose(t *testing.T) {
	ctx := context.Background()
	parent, err := os.MkdirTemp("/tmp", "lineage-cluster-")
	require.NoError(t, err)
	defer os.RemoveAll(parent)
	require.NoError(t, os.Chmod(parent, 0o755)) // the server's account has to get through
	c := started(t, Options{Dir: parent, Settings: []string{"fsync=off", "max_connections=23"}})
	require.Equal(t, parent, filepath.Dir(c.Dir()))
	conn, err := pgx.Connect(ctx, c.DSN("postgres"))
	require.NoError(t, err)
	var most string
	require.NoError(t, conn.QueryRow(ctx, "SHOW max_connections").Scan(&most))
	require.Equal(t, "23", most)
	require.NoError(t, c.Close())
	require.NoDirExists(t, c.Dir())
	require.Error(t, conn.Ping(ctx))
	_ = conn.Close(ctx)
}

func TestServerThatDoesNotStart(t *testing.T) {
	parent := t.TempDir()
	started(t, Options{}).Close() //nolint:errcheck // only to skip
	_, err := Start(Options{Dir: parent, Settings: []string{"no_such_setting=1"}})
	require.ErrorContains(t, err, "no_such_setting")
}

// TestClusterGoesWithItsProcess kills a process that has a cluster.
func TestClusterGoesWithItsProcess(t *testing.T) {
	const variable = "PGCLUSTER_CHILD"
	if at := os.Getenv(variable); at != "" {
		c, err := Start(Options{})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(at+".new", []byte(c.dir), 0o600))
		require.NoError(t, os.Rename(at+".new", at))
		select {}
	}
	require.NoError(t, started(t, Options{}).Close())
	at := filepath.Join(t.TempDir(), "dir")
	child := exec.Command(os.Args[0], "-test.run=^TestClusterGoesWithItsProcess$")
	child.Env = append(os.Environ(), variable+"="+at)
	require.NoError(t, child.Start())
	var dir []byte
	require.Eventually(t, func() bool {
		var err error
		dir, err = os.ReadFile(at)
		return err == nil
	}, patience, 20*time.Millisecond)
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.Eventually(t, func() bool {
		_, err := os.Stat(string(dir))
		return os.IsNotExist(err)
	}, patience, 20*time.Millisecond)
}
