package bench

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
)

// Each command runs on the store, whose threads a second run uses again.
func TestCommands(t *testing.T) {
	c := small(t)
	c.Postgres, c.Workloads, c.StoreMessages, c.Program = pgtest.DSN(t), []string{"commands"}, 2_000, filepath.Join(t.TempDir(), "lineage")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", c.Program, "./cmd/lineage")
	build.Dir = ".."
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	report, err := Run(t.Context(), c)
	require.NoError(t, err)
	units := map[string]int{}
	for _, row := range report.Rows {
		name, found := strings.CutPrefix(row.Workload, workCommands+": ")
		require.True(t, found)
		require.Equal(t, nameServed, row.System)
		if row.Unit == unitNanos {
			require.Positive(t, row.Value)
			require.Positive(t, row.CPUNanos)
		}
		units[name]++
	}
	for _, name := range []string{"info", "thread list of all", "search that makes the index", "export --all", "verify --deep", "gc", "search after gc"} {
		require.Equal(t, 2, units[name], name)
	}

	c.Commands = []string{"search: "}
	report, err = Run(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, report.Rows, 6)

	c.Commands, c.StoreMessages = nil, 1_000
	_, err = Run(t.Context(), c)
	require.ErrorIs(t, err, ErrConfig, "the store has other messages")
}

func TestCommandsWithoutTheProgram(t *testing.T) {
	c := small(t)
	c.Workloads = []string{"commands"}
	report, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, []Skipped{{Workload: "commands", System: namePostgres, Why: "the program lineage was not named"}}, report.Skipped)
}
