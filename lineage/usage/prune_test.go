package usage_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/structure"
)

// namesIn returns all names in an index.
func namesIn(t require.TestingT, dir string) (all []string) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, usage.FileName))
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query(`SELECT 'model ' || name || provider || tier FROM models UNION ALL SELECT 'user ' || user FROM threads WHERE user <> ''
		UNION ALL SELECT 'about ' || hex(id) || agent || project || git_branch || machine FROM about UNION ALL SELECT 'branch ' || hex(thread) || name FROM branches`)
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

// An index that collections prune has the names that one has that is built at once, whatever copies, forks and deletions there were, and
// reports the same.
func TestPrunedAsRebuilt(t *testing.T) {
	defer usage.SetWindowLimit(usage.SetWindowLimit(20))
	rapid.Check(t, func(r *rapid.T) {
		store, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(r, err)
		defer store.Close()
		dir := t.TempDir()
		x, err := usage.Open(bg, store, dir, usage.Options{})
		require.NoError(r, err)
		defer func() { require.NoError(r, x.Close()) }()
		var threads []*lineage.Thread
		var contexts []*lineage.Context
		add := func(c *lineage.Context, err error) {
			require.NoError(r, err)
			contexts = append(contexts, c)
		}
		one := func(n int, label string) int { return rapid.IntRange(0, n-1).Draw(r, label) }
		gone := func(err error) {
			if !errors.Is(err, lineage.ErrNotFound) && !errors.Is(err, lineage.ErrConflict) {
				require.NoError(r, err)
			}
		}
		answers := 0
		change := func() {
			switch kind := one(9, "change"); {
			case kind == 0 || len(threads) == 0:
				n := len(threads)
				metadata := fmt.Sprintf(`{"agent":"agent%d","cwd":"/project%d"}`, n%3, n)
				thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: fmt.Sprintf("user%d", n%2), Metadata: []byte(metadata)})
				require.NoError(r, err)
				threads = append(threads, thread)
				add(thread.Active(bg))
			case kind == 1:
				gone(threads[one(len(threads), "thread")].Delete(bg))
			case kind == 2:
				gone(contexts[one(len(contexts), "context")].Delete(bg))
			case kind == 3:
				fork, err := contexts[one(len(contexts), "context")].Fork(bg, lineage.ForkOptions{Thread: threads[one(len(threads), "thread")].ID()})
				if gone(err); err == nil {
					contexts = append(contexts, fork)
				}
			case kind == 4:
				c := contexts[one(len(contexts), "context")]
				var spans []lineage.SpanRef
				for e, err := range c.Entries(bg, lineage.Window{}) {
					if gone(err); err == nil {
						spans = append(spans, e.Span)
					}
				}
				if len(spans) > 0 {
					gone(c.MoveTo(bg, spans[one(len(spans), "span")], "rewind"))
				}
			default:
				var items []lineage.Item
				for range 1 + one(3, "answers") {
					answers++
					id := ""
					if one(3, "with an id") > 0 {
						id = fmt.Sprintf("msg_%d", one(12, "answer"))
					}
					item := said(id, fmt.Sprintf("m%d", answers), fmt.Sprint(1+one(2000, "output")))
					item.Body = []byte(strings.Replace(string(item.Body), "{", fmt.Sprintf(`{"model":"model%d",`, one(4, "model")), 1))
					items = append(items, item)
				}
				_, err := contexts[one(len(contexts), "context")].Extend(bg, items...)
				gone(err)
			}
		}
		for range 1 + one(4, "rounds") {
			for range one(30, "changes") {
				change()
			}
			require.NoError(r, x.Update(bg))
			_, err := store.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
			require.NoError(r, err)
			require.NoError(r, usage.Prune(bg, dir, write.Inner(write.Of(store).Engine())))
			require.NoError(r, x.Update(bg))
			at := t.TempDir()
			fresh, err := usage.Open(bg, store, at, usage.Options{})
			require.NoError(r, err)
			require.NoError(r, fresh.Update(bg))
			require.Equal(r, namesIn(r, at), namesIn(r, dir))
			for _, by := range [][]usage.By{nil, {usage.Model}, {usage.Thread, usage.Branch}} {
				q := usage.Query{By: by}
				of, err := fresh.Report(bg, q)
				require.NoError(r, err)
				report, err := x.Report(bg, q)
				require.NoError(r, err)
				require.Equal(r, of.Records(by), report.Records(by))
				require.Equal(r, of.TotalRecord(), report.TotalRecord())
			}
			require.NoError(r, fresh.Close())
		}
	})
}

// A collection removes the names of deleted threads from the file. What two handles report stays, and an index that cannot be pruned
// is built again.
func TestCollectionRemovesNames(t *testing.T) {
	dir := t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Prune: usage.Prune})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	var handles []*usage.Index
	for range 2 {
		x, err := usage.Open(bg, store, dir, usage.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, x.Close()) }()
		handles = append(handles, x)
	}
	requireOutput := func(expected int64) {
		t.Helper()
		for _, x := range handles {
			report, err := x.Report(bg, usage.Query{})
			require.NoError(t, err)
			require.Equal(t, expected, report.Total.Tokens[message.Output].N)
		}
	}
	begin := func(user, project, model, output string) *lineage.Thread {
		thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: user, Metadata: []byte(`{"agent":"codex","cwd":"` + project + `","gitBranch":"` + project + `-branch"}`)})
		require.NoError(t, err)
		main, err := thread.Active(bg)
		require.NoError(t, err)
		item := said("", "", output)
		item.Body = []byte(strings.Replace(string(item.Body), "{", `{"model":"`+model+`",`, 1))
		_, err = main.Extend(bg, item)
		require.NoError(t, err)
		return thread
	}
	has := func(word string) (has bool) {
		for _, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(filepath.Join(dir, usage.FileName+suffix))
			if err != nil {
				require.ErrorIs(t, err, os.ErrNotExist)
			}
			has = has || strings.Contains(string(b), word)
		}
		return has
	}
	secrets := []string{"voynich-user", "/voynich-project", "voynich-model"}
	for round, state := range []string{"whole", "damaged", "newer"} {
		begin("ann", "/stays", "model-that-stays", "5")
		deleted := begin(secrets[0], secrets[1], secrets[2], "100")
		requireOutput(int64(5*(round+1)) + 100)
		for _, word := range secrets {
			require.True(t, has(word), word)
		}
		require.NoError(t, deleted.Delete(bg))
		path := filepath.Join(dir, usage.FileName)
		switch state {
		case "damaged":
			require.NoError(t, os.WriteFile(path, []byte("not a database, but longer than nothing"), 0o600))
		case "newer":
			db, err := sql.Open("sqlite", "file:"+path)
			require.NoError(t, err)
			_, err = db.Exec(fmt.Sprintf(`PRAGMA user_version = %d`, usage.Format+1))
			require.NoError(t, err)
			require.NoError(t, db.Close())
		}
		_, err := store.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
		require.NoError(t, err)
		if state == "newer" {
			require.NoFileExists(t, path)
		} else {
			require.True(t, has("/stays"))
			require.False(t, has("voynich"))
		}
		requireOutput(int64(5 * (round + 1)))
		require.False(t, has("voynich"))
	}
}

// disturbed is an engine that calls a function when one of its snapshots looks up the end of a run.
type disturbed struct {
	backend.Engine
	disturb func()
}

func (e disturbed) StoreID() [16]byte { return e.Engine.(backend.Identified).StoreID() }

func (e disturbed) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	s, err := e.Engine.Snapshot(ctx)
	return disturbedSnapshot{s, e.disturb}, err
}

type disturbedSnapshot struct {
	backend.Snapshot
	disturb func()
}

func (s disturbedSnapshot) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	s.disturb()
	return s.Snapshot.Last(ctx, run)
}

// The models of answers that others add to the index while it is pruned stay.
func TestOthersWriteWhilePruning(t *testing.T) {
	dir := t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	x, err := usage.Open(bg, store, dir, usage.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	var main *lineage.Context
	for i := range 1001 { // more runs than are read at once
		thread, err := store.CreateThread(bg, lineage.ThreadOptions{})
		require.NoError(t, err)
		main, err = thread.Active(bg)
		require.NoError(t, err)
		_, err = main.Extend(bg, said("", fmt.Sprint("m", i), "5"))
		require.NoError(t, err)
	}
	require.NoError(t, x.Update(bg))
	calls := 0
	require.NoError(t, usage.Prune(bg, dir, disturbed{write.Inner(write.Of(store).Engine()), func() {
		if calls++; calls == 1 {
			item := said("", "last", "5")
			item.Body = []byte(strings.Replace(string(item.Body), "{", `{"model":"another-model",`, 1))
			_, err := main.Extend(bg, item)
			require.NoError(t, err)
			require.NoError(t, x.Update(bg))
		}
	}}))
	require.NotZero(t, calls)
	require.True(t, slices.ContainsFunc(namesIn(t, dir), func(s string) bool { return strings.Contains(s, "another-model") }))
}

// A process is killed before it has removed names from the file. The next collection removes them.
func TestKilledBeforePruning(t *testing.T) {
	const secret = "voynich-model"
	dir, killed := t.TempDir(), t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Prune: func(ctx context.Context, dir string, _ backend.Engine) error {
		return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			to := killed + strings.TrimPrefix(path, dir)
			switch {
			case err != nil:
				return err
			case e.IsDir():
				return os.MkdirAll(to, 0o700)
			case !e.Type().IsRegular():
				return nil
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(to, content, 0o600)
		})
	}})
	require.NoError(t, err)
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	item := said("", "", "5")
	item.Body = []byte(strings.Replace(string(item.Body), "{", `{"model":"`+secret+`",`, 1))
	_, err = main.Extend(bg, item)
	require.NoError(t, err)
	x, err := usage.Open(bg, store, dir, usage.Options{})
	require.NoError(t, err)
	require.NoError(t, x.Update(bg))
	require.NoError(t, x.Close())
	require.NoError(t, thread.Delete(bg))
	_, err = store.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	require.NoError(t, err)
	require.NoError(t, store.Close())
	require.Contains(t, fmt.Sprint(namesIn(t, killed)), secret)

	store, err = lineage.Open(bg, killed, lineage.Options{Durability: lineage.Normal, Prune: usage.Prune})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	_, err = store.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(namesIn(t, killed)), secret)
}
