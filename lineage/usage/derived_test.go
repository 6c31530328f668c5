package usage_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived/derivedtest"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage"
)

var bg = context.Background()

// figures is an index in a directory, for the suite of derived data.
type figures struct{ dir string }

func (i figures) Open(t require.TestingT, store *lineage.Store, written func()) derivedtest.Handle {
	x, err := usage.Open(bg, store, i.dir, usage.Options{Progress: func(done, total uint64) { written() }})
	require.NoError(t, err)
	return x
}

// rows returns what a report depends on.
func (i figures) Rows(t require.TestingT) []string { return rowsIn(t, i.dir) }

func rowsIn(t require.TestingT, dir string) (all []string) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, usage.FileName))
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query(`
		SELECT 'total ' || hex(r.id) || ' ' || s.quarter || ' ' || m.name || ' ' || s.bracket || ' ' || s.known || ' ' || s.answers || ' ' || s.requests || ' ' || s.t0 || ' ' || s.t4
			FROM totals s JOIN runs r ON r.number = s.run JOIN models m ON m.number = s.model
		UNION ALL SELECT 'thread ' || hex(a.id) || t.user || t.keeps || a.agent || a.project FROM about a JOIN threads t ON t.number = a.thread
		UNION ALL SELECT 'context ' || hex(c.id) || hex(c.parent) || c.aside FROM contexts c
		UNION ALL SELECT 'branch ' || hex(b.thread) || b.name || hex(b.context) FROM branches b
		UNION ALL SELECT 'tip ' || hex(p.id) || ' ' || hex(r.id) || ' ' || p.seq FROM tips p JOIN runs r ON r.number = p.run`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var s string
		require.NoError(t, rows.Scan(&s))
		all = append(all, s)
	}
	require.NoError(t, rows.Err())
	slices.Sort(all)
	return all
}

func (i figures) Number(t require.TestingT) (n int) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(i.dir, usage.FileName))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.QueryRow(`SELECT number FROM meta`).Scan(&n))
	return n
}

func TestDerived(t *testing.T) {
	defer usage.SetWindowLimit(usage.SetWindowLimit(1))
	derivedtest.Run(t, derivedtest.Config{New: func(t testing.TB) derivedtest.Data { return figures{t.TempDir()} }, Rebuilds: true, Checks: 8})
}

// A file of an older format is rebuilt. One of a newer program is left alone, also by a program that has the file open that it
// replaced.
func TestOtherFormats(t *testing.T) {
	store, dir := lineagetest.New(t, lineage.Options{}), t.TempDir()
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	active, err := thread.Active(bg)
	require.NoError(t, err)
	_, err = active.Extend(bg, lineage.Item{Kind: lineage.Message, Role: "assistant", Type: "application/json",
		Body: []byte(`{"role":"assistant","model":"m","content":"x","usage":{"input_tokens":7,"output_tokens":1}}`)})
	require.NoError(t, err)
	path := filepath.Join(dir, usage.FileName)
	change := func(statement string, args ...any) {
		db, err := sql.Open("sqlite", "file:"+path)
		require.NoError(t, err)
		_, err = db.Exec(fmt.Sprintf(statement, args...))
		require.NoError(t, err)
		require.NoError(t, db.Close())
	}
	open := func() (*usage.Index, error) { return usage.Open(bg, store, dir, usage.Options{}) }
	input := func(x *usage.Index) int64 {
		report, err := x.Report(bg, usage.Query{})
		require.NoError(t, err)
		return report.Total.Tokens[message.Input].N
	}
	for _, format := range []int{usage.Format - 1, 1, -1} {
		x, err := open()
		require.NoError(t, err)
		require.EqualValues(t, 7, input(x))
		require.NoError(t, x.Close())
		change(`UPDATE totals SET t0 = 1000; PRAGMA user_version = %d`, format)
		x, err = open()
		require.NoError(t, err)
		require.EqualValues(t, 7, input(x), "format %d", format)
		require.NoError(t, x.Close())
	}
	before, err := open()
	require.NoError(t, err)
	defer before.Close()
	require.EqualValues(t, 7, input(before))
	require.NoError(t, os.Rename(path, path+".replaced"))
	change(`CREATE TABLE later (row TEXT); PRAGMA user_version = %d`, usage.Format+1)
	for range 2 {
		_, err = open()
		require.ErrorIs(t, err, backend.ErrNewerFormat)
		_, err = before.Report(bg, usage.Query{})
		require.ErrorIs(t, err, backend.ErrNewerFormat)
	}
	change(`INSERT INTO later VALUES ('%s')`, "is there")
	require.NoError(t, os.Remove(path))
	require.EqualValues(t, 7, input(before))
}

func TestMovedDirectory(t *testing.T) {
	derivedtest.Moved(t, func(store *lineage.Store, dir string) (derivedtest.Handle, error) {
		return usage.Open(bg, store, dir, usage.Options{})
	})
}
