package bench

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The measured operations work on every store.
func TestOperations(t *testing.T) {
	ctx := context.Background()
	c := small(t)
	c.setDefaults()
	embedded, err := newEmbeddedEngines(ctx, filepath.Join(t.TempDir(), "store"))
	require.NoError(t, err)
	defer embedded.close()
	texts := textsOf(newMessages(&c, 1).some(60))
	require.NoError(t, embedded.load(ctx, "c", texts))
	for _, name := range operations {
		_, err := embedded.measure(ctx, name, 1)
		require.NoError(t, err, name)
	}
	_, err = embedded.measure(ctx, "nothing", 1)
	require.Error(t, err)
	got, err := embedded.chats.Chat(ctx, "c")
	require.NoError(t, err)
	require.Nil(t, got)
}

func TestCompareOperations(t *testing.T) {
	modules := os.Getenv("LINEAGE_TEST_DEEPAGENTS")
	if modules == "" {
		modules = filepath.Join("..", ".bin", "deepagents")
	}
	c := Config{Dir: t.TempDir(), Sizes: []int{100, 300}, Rounds: 2, NodeModules: modules} // an operation is repeated the less the longer the chat is
	c.setDefaults()
	if _, err := (&run{config: c}).nodeSystem(); err != nil {
		t.Skipf("NOT RUN with @deepagents/context: %v; scripts/deepagents.sh fetches it", err)
	}
	all, err := CompareOperations(context.Background(), c)
	require.NoError(t, err)
	require.Len(t, all, 2*2*len(operations))
	for _, o := range all {
		require.Positive(t, o.Package, o.Name)
		require.Positive(t, o.Ratio(), o.Name)
		require.Equal(t, o.System == nameSQLiteEngine, o.Bare > 0, o.Name)
	}
	var table bytes.Buffer
	require.NoError(t, WriteOperations(&table, all))
	require.Contains(t, table.String(), "times as fast")
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// What a store on SQLite ran is repeated through the bare driver, changes included.
func TestBareDriver(t *testing.T) {
	ctx := context.Background()
	c := small(t)
	c.setDefaults()
	ours, bare, err := newSQLiteEngines(ctx, t.TempDir())
	require.NoError(t, err)
	defer ours.close()
	defer bare.close()
	texts := textsOf(newMessages(&c, 1).some(60))
	require.NoError(t, ours.load(ctx, "c", texts))
	require.NoError(t, bare.load(ctx, "c", texts))
	count := func(of interface {
		QueryRowContext(context.Context, string, ...any) *sql.Row
	}) (n int) {
		require.NoError(t, of.QueryRowContext(ctx, "SELECT count(*) FROM messages").Scan(&n))
		return n
	}
	for _, name := range operations {
		_, err := ours.measure(ctx, name, 2)
		require.NoError(t, err, name)
		_, err = bare.measure(ctx, name, 2)
		require.NoError(t, err, name)
		require.Equal(t, count(bare.pool), count(bare.copied), name)
		bare.r.take() // the count
	}
	_, err = bare.measure(ctx, "nothing", 1)
	require.Error(t, err)
}
