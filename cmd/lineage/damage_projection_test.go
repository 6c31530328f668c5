package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/campaign"
)

// projectionFile is the database that is beside a store.
const projectionFile = "chats.db"

// rowsOf returns the rows of all tables that a projection fills, with how often each is there. Tables that are for
// searching and for going on are none of them.
func rowsOf(t *testing.T, path string) (map[string]int, error) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	require.NoError(t, err)
	defer db.Close()
	names, err := db.Query(`SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%' ` +
		`AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE 'lineage\_%' ESCAPE '\' AND name NOT LIKE '%\_fts\_%' ESCAPE '\'`)
	if err != nil {
		return nil, err
	}
	var tables []string
	for names.Next() {
		var name string
		require.NoError(t, names.Scan(&name))
		tables = append(tables, name)
	}
	if err := names.Err(); err != nil {
		return nil, err
	}
	all := map[string]int{}
	for _, table := range tables {
		if err := addRows(db, table, all); err != nil {
			return nil, fmt.Errorf("%s: %w", table, err)
		}
	}
	return all, nil
}

func addRows(db *sql.DB, table string, all map[string]int) error {
	rows, err := db.Query(fmt.Sprintf("SELECT * FROM %q NOT INDEXED", table))
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		all[fmt.Sprintf("%s %q", table, values)]++
	}
	return rows.Err()
}

// TestDamageOfAProjection flips single bytes of a store with a projection beside it, in a SQLite file, and brings the
// projection up to date or compares it. Damage to the store never reaches the database: what it has then are rows of a
// sound one. Damage to the database is reported by a comparison, or no row shows it.
//
//test:damage
func TestDamageOfAProjection(t *testing.T) {
	for _, prepare := range []string{"", "pack", "pack --dense"} {
		t.Run("store "+prepare, func(t *testing.T) {
			t.Parallel()
			damageProjection(t, prepare)
		})
	}
}

func damageProjection(t *testing.T, prepare string) {
	room := t.TempDir()
	behind, whole := filepath.Join(room, "behind"), filepath.Join(room, "whole")
	do := func(dir, line string) result {
		line = strings.ReplaceAll(line, "DB", "sqlite:"+filepath.Join(dir, projectionFile))
		return runLine(t.Context(), append(strings.Fields(line), "--store", filepath.Join(dir, "store"))...)
	}
	must := func(dir, line string) {
		got := do(dir, line)
		require.Zero(t, got.code, "%s: %s", line, got.err)
	}
	require.NoError(t, os.Mkdir(behind, 0o700))
	talkALot(t, filepath.Join(behind, "store"))
	must(behind, "project DB")
	old, err := rowsOf(t, filepath.Join(behind, projectionFile))
	require.NoError(t, err)
	must(behind, "append --thread thread-1 a_later_walrus")
	must(behind, "thread delete thread-3 --yes")
	must(behind, "thread create --title new")
	must(behind, "append --thread new hello")
	if prepare != "" {
		must(behind, prepare)
	}
	require.NoError(t, os.CopyFS(whole, os.DirFS(behind)))
	must(whole, "project DB")
	must(whole, "compare DB")
	want, err := rowsOf(t, filepath.Join(whole, projectionFile))
	require.NoError(t, err)
	require.Greater(t, len(want), 100)
	require.NotEqual(t, want, old)

	n := campaign.Rounds(20)
	campaign.EachDamage(t, behind, n/2, func(copied string, d campaign.Damage) {
		got := do(copied, "project DB")
		requireProjected(t, copied, d, got, old, want)
	})
	campaign.EachDamage(t, whole, n-n/2, func(copied string, d campaign.Damage) {
		got := do(copied, "compare DB --json")
		requireCompared(t, copied, d, got, want)
	})
}

// The id of a row may be right in an index of the database and damaged in the table, or the other way round.
func TestCompareFindsADamagedID(t *testing.T) {
	room := t.TempDir()
	dir, path := filepath.Join(room, "store"), filepath.Join(room, projectionFile)
	body := talkALot(t, dir)
	require.Zero(t, runLine(t.Context(), "project", "sqlite:"+path, "--store", dir).code)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	places := 0
	for at := 0; ; places++ {
		next := bytes.Index(b[at:], []byte(body))
		if next < 0 {
			break
		}
		at += next + 1
		campaign.Flip(t, path, int64(at), 0x40)
		got := runLine(t.Context(), "compare", "sqlite:"+path, "--store", dir)
		require.NotZero(t, got.code, "byte %d: %s", at, got.out)
		campaign.Flip(t, path, int64(at), 0x40)
	}
	require.Greater(t, places, 1, "in a table and in an index")
	require.Zero(t, runLine(t.Context(), "compare", "sqlite:"+path, "--store", dir).code)
}

func inDatabase(d campaign.Damage) bool { return strings.HasPrefix(d.File, projectionFile) }

// requireProjected requires a database to be up to date, or as it was, where the store was damaged.
func requireProjected(t *testing.T, dir string, d campaign.Damage, got result, old, want map[string]int) {
	t.Helper()
	what := fmt.Sprintf("%v: exit %d\n%s%s", d, got.code, got.out, got.err)
	if inDatabase(d) {
		require.Contains(t, []int{app.ExitOK, app.ExitFailure, app.ExitCorrupt, app.ExitConflict}, got.code, what)
		return
	}
	found, err := rowsOf(t, filepath.Join(dir, projectionFile))
	require.NoError(t, err, what)
	if got.code == app.ExitOK {
		require.Equal(t, want, found, what)
		return
	}
	requireDamageReported(t, got, what)
	for row := range found {
		require.True(t, old[row] > 0 || want[row] > 0, "%s\n%s", what, row)
	}
}

func requireDamageReported(t *testing.T, got result, what string) {
	t.Helper()
	if strings.Contains(got.err, "a newer version of lineage reads it") {
		require.Equal(t, app.ExitFailure, got.code, what)
	} else {
		require.Equal(t, app.ExitCorrupt, got.code, what)
	}
}

// requireCompared requires a comparison to say that all is well only if it is.
func requireCompared(t *testing.T, dir string, d campaign.Damage, got result, want map[string]int) {
	t.Helper()
	what := fmt.Sprintf("%v: exit %d\n%s%s", d, got.code, got.out, got.err)
	switch {
	case got.code == app.ExitOK:
		found, err := rowsOf(t, filepath.Join(dir, projectionFile))
		require.NoError(t, err, what)
		if !maps.Equal(found, want) {
			require.Equal(t, want, found, what)
		}
	case inDatabase(d):
		require.Contains(t, []int{app.ExitFailure, app.ExitCorrupt, app.ExitDiffers}, got.code, what)
	default:
		requireDamageReported(t, got, what)
	}
}
