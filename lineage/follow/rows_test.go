package follow

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// Rows may be stored before their thread: a process that is killed then stops no later one.
func TestRowsBeforeTheirThread(t *testing.T) {
	store := memory(t)
	const database = "/home/state.vscdb"
	row := func(key string) archive.Row {
		return archive.Row{Key: "t " + key, JSON: fmt.Appendf(nil, `{"table":"t","key":%q,"row":{"said":%q}}`, key, strings.Repeat(key, 100))}
	}
	keep := func(rows ...archive.Row) {
		t.Helper()
		r := &run{store: store, options: Options{Machine: Machine{ID: machine, Secret: "s"}, Clock: systemClock{}}}
		r.clock = r.options.Clock
		f := &file{path: database, folder: &folder{agent: Agent{Name: "cursor"}}}
		require.NoError(t, r.keepRows(bg, f, "s1", lineage.ThreadID{}, rows))
		again, err := r.flushRows(bg, f)
		require.NoError(t, err)
		require.False(t, again)
	}
	keep(row("a"))
	keep(row("a"), row("b"))
	_, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "s1"})
	require.NoError(t, err)
	keep(row("a"), row("b"), row("c"))
	s, err := FindSource(bg, store, machine, rowsPath(database, "s1"))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, s.Export(bg, &out))
	require.Equal(t, 3, strings.Count(out.String(), "\n"))
	for _, key := range []string{"a", "b", "c"} {
		require.Contains(t, out.String(), string(row(key).JSON)+"\n")
	}
}
