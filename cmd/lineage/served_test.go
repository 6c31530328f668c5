package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/pgtest"
)

// TestCommandsWorkOnServedStores works on a store on a server from two machines, whose caches are
// their own.
func TestCommandsWorkOnServedStores(t *testing.T) {
	named := pgtest.DSN(t)
	if !strings.HasPrefix(named, "postgres") {
		t.Skip("the server is named by no URL")
	}
	joint := "?"
	if strings.Contains(named, "?") {
		joint = "&"
	}
	named += joint + "store=main&unsafe=true"
	caches := map[string]string{"a": t.TempDir(), "b": t.TempDir()}
	run := func(want int, machine string, args ...string) result {
		t.Helper()
		t.Setenv("XDG_CACHE_HOME", caches[machine])
		got := runLine(t.Context(), append(args, "--store", named)...)
		require.Equal(t, want, got.code, "%v: %s", args, got.err)
		return got
	}
	run(app.ExitNotFound, "a", "info")
	require.Contains(t, run(0, "a", "init").out, "store=main")
	require.NotEqual(t, 0, runLine(t.Context(), "init", "--store", named).code)
	run(0, "a", "append", "Plan a weekend in Lisbon.")
	run(0, "b", "append", "Trams and fish.", "-r", "assistant")
	run(0, "a", "branch", "cheap", "--from", ":1", "--switch")
	run(0, "b", "append", "Cheaper, please.")
	log := run(0, "a", "log", "--oneline").out
	require.Contains(t, log, "Cheaper")
	require.Equal(t, log, run(0, "b", "log", "--oneline").out)
	require.Contains(t, run(0, "a", "tree").out, "cheap *")
	require.Contains(t, run(0, "b", "search", "trams", "--json").out, "<mark>Trams</mark>")
	require.Contains(t, run(0, "a", "info", "--json").out, `"messages":3`)
	run(0, "a", "stats")
	t.Setenv("XDG_CACHE_HOME", caches["a"])
	var output, problems bytes.Buffer
	asked := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search","arguments":{"query":"trams"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"usage","arguments":{}}}
{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"append","arguments":{"to":"main","role":"user","text":"Said by an agent."}}}
`)
	require.Equal(t, 0, execute(t.Context(), app.New(asked, &output, &problems, func(string) string { return "" }), []string{"mcp", "--all", "--write", "append", "--store", named}), problems.String())
	require.NotContains(t, output.String(), `"isError":true`)
	require.Contains(t, output.String(), "1 result in the store.")
	require.Contains(t, run(0, "b", "log", "main", "--oneline").out, "Said by an agent.")
	run(0, "b", "verify", "--deep")
	require.Contains(t, run(app.ExitFailure, "a", "pack").err, "hint: it is compressed as it is written")
	require.Contains(t, run(app.ExitFailure, "a", "backup", filepath.Join(t.TempDir(), "copy")).err, "hint: back up its database, or 'lineage copy' it into a directory")

	// What is erased is not found, before a collection and after it. No machine has a copy of the texts.
	run(0, "a", "append", "Nobody shall read this.")
	run(0, "a", "search", "nobody")
	run(0, "b", "search", "nobody")
	run(0, "b", "erase", ":3", "--yes")
	run(app.ExitNoHit, "a", "search", "nobody")
	require.Contains(t, run(0, "a", "gc", "--dry-run").out, "would remove")
	require.Contains(t, run(0, "a", "gc", "--yes", "--keep-reflog", "0", "--keep-unused", "0").out, "VACUUM")
	for machine, dir := range caches {
		run(app.ExitNoHit, machine, "search", "nobody")
		run(0, machine, "search", "trams")
		texts, err := filepath.Glob(dir + "/lineage/*/search.db")
		require.NoError(t, err)
		require.Empty(t, texts)
	}
	run(0, "b", "verify", "--deep")
	run(app.ExitUsage, "b", "repair")

	// What answers used is counted on both machines.
	run(0, "a", "import", "../../lineage/archive/testdata/agents/gemini")
	used := run(0, "a", "usage", "--json").out
	require.Contains(t, used, `"total":true,"requests":3`)
	require.Equal(t, used, run(0, "b", "usage", "--json").out)

	// As a bundle to a store in a directory.
	dir, file := t.TempDir()+"/store", t.TempDir()+"/all.bundle"
	run(0, "b", "bundle", "create", file, "--all")
	got := runLine(t.Context(), "bundle", "import", file, "--store", dir)
	require.Equal(t, 0, got.code, got.err)
	require.Contains(t, runLine(t.Context(), "log", "--oneline", "--store", dir).out, "Cheaper")

	// Commit by commit to a directory, and back into another store.
	copied, back := t.TempDir()+"/copied", strings.Replace(named, "store=main", "store=back", 1)
	line := func(want int, args ...string) result {
		t.Helper()
		got := runLine(t.Context(), args...)
		require.Equal(t, want, got.code, "%v: %s", args, got.err)
		return got
	}
	log = run(0, "a", "log", "--oneline").out
	require.Contains(t, line(0, "copy", named, copied).out, "copied")
	line(0, "copy", copied, back)
	for _, store := range []string{copied, back} {
		require.Equal(t, log, line(0, "log", "--oneline", "--store", store).out)
		line(0, "verify", "--deep", "--store", store)
	}
	line(0, "append", "More.", "--store", back)
	require.Contains(t, line(0, "copy", back, copied, "--json").out, `"added":1`)
	line(0, "append", "Less.", "--store", named)
	require.Contains(t, line(app.ExitConflict, "copy", copied, named).err, "already exists, and is no beginning of a copy")
	line(app.ExitNotFound, "copy", t.TempDir(), copied)
}
