package main

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
)

func TestCommandsWorkOnPostgres(t *testing.T) {
	campaign.Long(t)
	dsn := pgtest.DSN(t)
	if !app.IsDSN(dsn) {
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
	run(app.ExitConflict, "append", "late", "--after", "m-1", "--store", dsn)
	run(0, "checkpoint", "here", "--store", dsn)
	require.Contains(t, run(0, "log", "--oneline", "--store", dsn).out, "Cheaper")
	require.Contains(t, run(0, "tree", "--store", dsn).out, "cheap *, ◆ here")
	require.Contains(t, run(0, "search", "trams", "--json", "--store", dsn).out, "<mark>Trams</mark>")
	run(app.ExitNotFound, "switch", "nobody", "--store", dsn)

	// Into a store and, by way of another database, back.
	dir := t.TempDir() + "/store"
	require.Contains(t, run(0, "import", dsn, "--store", dir, "--json").out, `"new_messages":3`)
	require.Contains(t, run(0, "log", "--store", dir, "--oneline").out, "Cheaper")
	run(app.ExitFailure, "project", dsn, "--store", dir)
	other := pgtest.DSN(t)
	run(0, "project", other, "--store", dir)
	run(0, "compare", other, "--store", dir)
	require.Contains(t, run(0, "log", "--oneline", "--store", other).out, "Cheaper")

	// Reading creates nothing, and needs no rights but to read.
	empty := pgtest.DSN(t)
	for _, line := range []string{"log", "thread", "tree", "search fish", "branch", "branch cheap", "checkpoint", "show", "thread show"} {
		got := run(app.ExitNotFound, append(strings.Fields(line), "--store", empty)...)
		require.Contains(t, got.err, "tables of chats are missing", line)
		require.Contains(t, got.err, "?store=NAME", line)
	}
	run(app.ExitNotFound, "import", empty, "--store", t.TempDir()+"/none")
	conn, err := pgx.Connect(t.Context(), empty)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	var tables int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`).Scan(&tables))
	require.Zero(t, tables)
	run(0, "append", "Is it warm?", "--store", empty)
	reader := "lineage_test_" + strings.ToLower(rand.Text())
	for _, statement := range []string{"CREATE ROLE " + reader + " LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + reader} {
		_, err := conn.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	defer func() {
		_, err := conn.Exec(context.Background(), "DROP OWNED BY "+reader+"; DROP ROLE "+reader)
		require.NoError(t, err)
	}()
	u, err := url.Parse(empty)
	require.NoError(t, err)
	query := u.Query()
	query.Set("role", reader)
	u.RawQuery = query.Encode()
	require.Contains(t, run(0, "log", "--store", u.String()).out, "Is it warm?")
	require.Contains(t, run(0, "search", "warm", "--store", u.String()).out, "warm")
	require.Contains(t, run(app.ExitFailure, "append", "no", "--store", u.String()).err, "permission denied")
}

// Without an extension, init --distribute says what is missing, and creates no store.
func TestInitDistribute(t *testing.T) {
	dsn := pgtest.DSN(t)
	if !app.IsDSN(dsn) {
		t.Skipf("the server is named by %q, which is no URL", strings.SplitN(dsn, " ", 2)[0])
	}
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	q := u.Query()
	q.Set("store", "s")
	q.Set("unsafe", "true")
	u.RawQuery = q.Encode()
	got := runLine(t.Context(), "init", "--distribute", "--store", u.String())
	require.Equal(t, app.ExitFailure, got.code)
	require.Contains(t, got.err, "CREATE EXTENSION citus")
	got = runLine(t.Context(), "init", "--store", u.String())
	require.Equal(t, app.ExitOK, got.code, got.err)
	require.Contains(t, got.out, "created")
}

// The commands of the manual in which a team shares a store work one after the other, on a server that exists.
func TestTeamInTenCommands(t *testing.T) {
	for _, program := range []string{"createdb", "psql"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the commands need %s", program)
		}
	}
	manual, err := os.ReadFile("../../docs/postgres.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(manual), "\n## A team in ten commands\n")
	require.True(t, found)
	_, block, found := strings.Cut(section, "```sh\n")
	require.True(t, found)
	block, _, found = strings.Cut(block, "```")
	require.True(t, found)
	server := pgtest.Own(t, "fsync=on")
	u, err := url.Parse(server.DSN("postgres"))
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), u.String())
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), `CREATE ROLE owner SUPERUSER LOGIN`) // who starts the server in the first commands
	require.NoError(t, err)
	var kept, starts []string
	for line := range strings.Lines(block) {
		if command, _, _ := strings.Cut(line, " "); slices.Contains([]string{"export", "initdb", "pg_ctl"}, command) {
			starts = append(starts, command)
		} else {
			kept = append(kept, line)
		}
	}
	require.Equal(t, []string{"export", "initdb", "pg_ctl"}, starts)

	script := "env PGHOST=" + u.Query().Get("host") + "\nenv PGPORT=" + u.Query().Get("port") + `
exec sh -e -u team.sh
stdout '◉ 1 .*What is left to do for release 2\?.*main \*'
stdout '● 2 .*Which statements are slow\?.*main-v2'
stdout '^    Which statements are slow\?$'
stdout '^ok: \d+ commits, checksums and numbering are right$'
! exec psql -U ada team -c 'DELETE FROM lineage_log'
stderr 'permission denied'
! exec psql -U bob team -c 'UPDATE lineage_log SET data = NULL'
stderr 'permission denied'
-- team.sh --
` + strings.Join(kept, "")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "team.txtar"), []byte(script), 0o600))
	testscript.Run(t, scriptParams(dir))
}
