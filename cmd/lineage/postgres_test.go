package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
)

func TestCommandsWorkOnPostgres(t *testing.T) {
	campaign.Long(t)
	dsn := pgtest.DSN(t)
	if !isDSN(dsn) {
		t.Skipf("the server is named by %q, which is no URL", strings.SplitN(dsn, " ", 2)[0])
	}
	run := func(want int, args ...string) result {
		t.Helper()
		got := runLine(t.Context(), args...)
		require.Equal(t, want, got.code, "%v: %s", args, got.err)
		return got
	}
	run(0, "thread", "create", "--id", "trip", "--title", "Lisbon", "--store", dsn)
	run(0, "append", "Plan a weekend in Lisbon.", "--id", "m-1", "--store", dsn)
	run(0, "append", "Trams and fish.", "-r", "assistant", "--store", dsn)
	run(0, "branch", "cheap", "--from", ":1", "--switch", "--store", dsn)
	run(0, "append", "Cheaper, please.", "--store", dsn)
	run(exitConflict, "append", "late", "--after", "m-1", "--store", dsn)
	run(0, "checkpoint", "here", "--store", dsn)
	require.Contains(t, run(0, "log", "--oneline", "--store", dsn).out, "Cheaper")
	require.Contains(t, run(0, "tree", "--store", dsn).out, "cheap *, ◆ here")
	require.Contains(t, run(0, "search", "trams", "--json", "--store", dsn).out, "<mark>Trams</mark>")
	run(exitNotFound, "switch", "nobody", "--store", dsn)

	// Into a store and, by way of another database, back.
	dir := t.TempDir() + "/store"
	require.Contains(t, run(0, "import", dsn, "--store", dir, "--json").out, `"new_messages":3`)
	require.Contains(t, run(0, "log", "--store", dir, "--oneline").out, "Cheaper")
	run(exitFailure, "project", dsn, "--store", dir)
	other := pgtest.DSN(t)
	run(0, "project", other, "--store", dir)
	run(0, "compare", other, "--store", dir)
	require.Contains(t, run(0, "log", "--oneline", "--store", other).out, "Cheaper")
}
