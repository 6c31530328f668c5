package search_test

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/search/searchtest"
	"github.com/lineage-store/lineage/structure"
)

// Prune implements derivedtest.Pruned. As a collection does, it removes a file that cannot be pruned.
func (i indexed) Prune(t require.TestingT, store *lineage.Store) {
	if err := search.Prune(bg, i.dir, write.Inner(write.Of(store).Engine())); err != nil {
		removeIndex(t, i.dir)
		x, err := search.Open(bg, store, i.dir, search.Options{})
		require.NoError(t, err)
		require.NoError(t, x.Update(bg))
		require.NoError(t, x.Close())
	}
}

func removeIndex(t require.TestingT, dir string) {
	for _, suffix := range []string{"-journal", "-wal", "-shm", ""} {
		if err := os.Remove(filepath.Join(dir, search.FileName+suffix)); err != nil {
			require.ErrorIs(t, err, os.ErrNotExist)
		}
	}
}

// Whole implements derivedtest.Pruned. Texts that were erased may have a row without words.
func (i indexed) Whole(t require.TestingT) []string {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(i.dir, search.FileName))
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query(`SELECT 'usage ' || hex(x.id) || ' ' || hex(r.id) || ' ' || u.seq || ' ' || u.head || ' ' || o.kind || o.name || ' ' || u.words
			FROM usages u JOIN texts x ON x.number = u.text JOIN runs r ON r.number = u.run JOIN roles o ON o.number = u.role WHERE x.number IN (SELECT rowid FROM terms)
		UNION ALL SELECT 'term ' || hex(x.id) || ' ' || v.term || ' ' || v.offset FROM places v JOIN texts x ON x.number = v.doc
		UNION ALL SELECT 'run ' || hex(r.id) || ' ' || IFNULL((SELECT hex(p.id) FROM runs p WHERE p.number = r.parent), '') || ' ' || r.after || ' ' || r.last || ' ' || r.reached || ' ' ||
			IFNULL((SELECT hex(t.id) || t.incarnation FROM threads t WHERE t.number = r.thread), '') FROM runs r
		UNION ALL SELECT 'tip ' || hex(p.id) || ' ' || IFNULL((SELECT hex(t.id) || t.incarnation FROM threads t WHERE t.number = p.thread), '') || ' ' || hex(r.id) || ' ' || p.seq
			FROM tips p JOIN runs r ON r.number = p.run
		UNION ALL SELECT 'tip without a run' FROM tips WHERE run NOT IN (SELECT number FROM runs)
		UNION ALL SELECT 'usage without a run' FROM usages WHERE run NOT IN (SELECT number FROM runs)
		UNION ALL SELECT 'usage without a text' FROM usages WHERE text NOT IN (SELECT number FROM texts)
		UNION ALL SELECT 'text without a usage' FROM texts WHERE number NOT IN (SELECT text FROM usages)
		UNION ALL SELECT 'vector without a text' FROM vectors v WHERE NOT EXISTS (SELECT 1 FROM texts x WHERE x.number = v.text AND x.id = v.id)
		UNION ALL SELECT 'pending without a text' FROM pending v WHERE NOT EXISTS (SELECT 1 FROM texts x WHERE x.number = v.text AND x.id = v.id)
		UNION ALL SELECT 'words without a text' FROM terms WHERE rowid NOT IN (SELECT number FROM texts)
		UNION ALL SELECT 'thread ' || hex(id) || ' ' || incarnation || ' ' || user || ' ' || keeps FROM threads
		UNION ALL SELECT 'erased ' || hex(id) FROM erased
		UNION ALL SELECT 'at ' || number || ' ' || id || ' ' || seen_number || ' ' || seen_id || ' ' || spans FROM meta`)
	require.NoError(t, err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		require.NoError(t, rows.Scan(&s))
		all = append(all, s)
	}
	require.NoError(t, rows.Err())
	slices.Sort(all)
	return all
}

// secret returns words that nothing else has. SQLite stores the end of a term that begins as the one before.
func secret(n int) string {
	var words []string
	for i := range 40 {
		words = append(words, fmt.Sprintf("%cq%dvoynich%d", 'a'+(n+i)%26, n, i))
	}
	return strings.Join(words, " ")
}

// requireSecret requires that the index has parts of secrets.
func requireSecret(t testing.TB, dir string) {
	t.Helper()
	has := false
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(filepath.Join(dir, search.FileName+suffix))
		require.NoError(t, err)
		has = has || strings.Contains(string(b), "voynich")
	}
	require.True(t, has)
}

// indexSize is the size of an index with what it has not checkpointed.
func indexSize(t testing.TB, dir string) (size int64) {
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(filepath.Join(dir, search.FileName+suffix))
		require.NoError(t, err)
		size += info.Size()
	}
	return size
}

// requireNoSecret requires that no file of a directory has a part of a secret.
func requireNoSecret(t testing.TB, dir string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		require.NotContains(t, string(b), "voynich", path)
		return err
	}))
}

func collect(t testing.TB, store *lineage.Store) backend.CollectReport {
	t.Helper()
	report, err := store.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	require.NoError(t, err)
	return report
}

// A collection keeps in the index what lives, and nothing else, and makes the file smaller.
func TestCollectionKeepsTheIndex(t *testing.T) {
	c, dir := &counter{}, t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Prune: search.Prune})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	x, err := search.Open(bg, store, dir, c.options())
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	y, err := search.Open(bg, store, dir, search.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, y.Close()) }()

	first, main := newMain(t, store, lineage.User("an ant that stays"), lineage.User("a bee"))
	newMain(t, store, lineage.User(secret(0)), lineage.User("before the end"))
	deleted, cut := newMain(t, store, lineage.User("a cat"), lineage.User("another ant"))
	fork, err := cut.Fork(bg, lineage.ForkOptions{Thread: first.ID()})
	require.NoError(t, err)
	for i := range 200 {
		_, err := cut.Extend(bg, lineage.User(secret(1+i)+" ant"))
		require.NoError(t, err)
	}
	nearest(t, x, 1, 0, 0, 0)
	require.NotEmpty(t, found(t, y, "aq0voynich0 OR bq9voynich*"))
	requireSecret(t, dir)
	file, size := fileOf(t, dir), indexSize(t, dir)
	embedded := len(c.embedded)

	require.NoError(t, store.Erase(bg, content.Sum([]byte(secret(0)))))
	require.NoError(t, deleted.Delete(bg))
	_, err = main.Summarize(bg, searchtest.Saying("of the ants"), lineage.SummarizeOptions{})
	require.NoError(t, err)
	report := collect(t, store)
	require.NotContains(t, report.Removed, search.FileName)
	require.NotZero(t, report.Erased)
	requireNoSecret(t, dir)
	require.True(t, os.SameFile(file, fileOf(t, dir)), "the index was removed")
	require.Less(t, indexSize(t, dir), size/2)
	requireRebuilt(t, store, dir)
	require.Len(t, found(t, x, "ant"), 3)
	require.Equal(t, []string{"<mark>of</mark> the <mark>ants</mark>"}, found(t, y, "ants AND of"))
	require.Empty(t, found(t, y, "aq*"))
	nearest(t, x, 1, 0, 0, 0)
	require.Len(t, c.embedded, embedded+1, "texts that stay were embedded again")

	// What is left of a run is collected, too, and a collection of nothing changes nothing.
	require.NoError(t, fork.Delete(bg))
	collect(t, store)
	require.Empty(t, found(t, y, "cat"))
	requireRebuilt(t, store, dir)
	file = fileOf(t, dir)
	require.Zero(t, collect(t, store).Records)
	require.True(t, os.SameFile(file, fileOf(t, dir)))
	require.Len(t, found(t, x, "ant"), 2)
}

// TestPrunedFindsWhatIsSeen changes a store at random, with collections by the process that has its files and by another one,
// between searches of two handles that may have no time to bring the index up to date. After a collection the index has what an
// index has that is built then.
func TestPrunedFindsWhatIsSeen(t *testing.T) {
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	kept := 0
	rapid.Check(t, func(r *rapid.T) {
		searched.WindowLimit = rapid.SampledFrom([]int{0, 1, 7}).Draw(r, "window")
		dir := t.TempDir()
		o := lineage.Options{Durability: lineage.Normal, Prune: func(ctx context.Context, dir string, e backend.Engine) error {
			err := search.Prune(ctx, dir, e)
			if err == nil {
				kept++
			}
			return err
		}}
		owner, err := lineage.Open(bg, dir, o)
		require.NoError(r, err)
		defer owner.Close()
		guest, err := lineage.Open(bg, dir, o)
		require.NoError(r, err)
		defer guest.Close()
		x, err := search.Open(bg, owner, dir, new(counter).options())
		require.NoError(r, err)
		defer func() { require.NoError(r, x.Close()) }()
		y, err := search.Open(bg, guest, dir, search.Options{})
		require.NoError(r, err)
		defer func() { require.NoError(r, y.Close()) }()
		m := searchtest.NewMachine(r, owner)
		for range rapid.IntRange(1, 5).Draw(r, "rounds") {
			for range rapid.IntRange(0, 15).Draw(r, "steps") {
				m.Step()
			}
			switch rapid.IntRange(0, 3).Draw(r, "search") {
			case 0:
				m.Check(x)
			case 1:
				m.Check(y)
			case 2:
				m.Behind, m.UpdateFor = true, 1
				m.Check(y)
				m.Behind, m.UpdateFor = false, 0
			case 3:
				nearest(t, x, 1, 0, 0, 0)
			}
			for range rapid.IntRange(0, 5).Draw(r, "more") {
				m.Step()
			}
			collect(t, rapid.SampledFrom([]*lineage.Store{owner, guest}).Draw(r, "collector"))
			if rapid.Bool().Draw(r, "compare") {
				require.NoError(r, rapid.SampledFrom([]*search.Index{x, y}).Draw(r, "handle").Update(bg))
				fresh := indexed{t.TempDir()}
				h := fresh.Open(r, owner, func() {})
				require.NoError(r, h.Update(bg))
				require.NoError(r, h.Close())
				require.Equal(r, fresh.Whole(r), indexed{dir}.Whole(r))
			}
		}
		m.Check(y)
		m.Check(x)
	})
	if !testing.Short() { // few histories may have no collection that finds an index
		require.NotZero(t, kept)
	}
}

// An index that cannot be pruned is removed, as without Prune: nothing of it stays in the directory.
func TestIndexesThatAreNotPruned(t *testing.T) {
	defer search.SetPatience(search.SetPatience(200 * time.Millisecond))
	for name, spoil := range map[string]func(t *testing.T, dir string, store *lineage.Store) (end func()){
		"another process reads": func(t *testing.T, dir string, _ *lineage.Store) func() {
			db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, search.FileName))
			require.NoError(t, err)
			tx, err := db.Begin()
			require.NoError(t, err)
			require.NoError(t, tx.QueryRow(`SELECT number FROM meta`).Scan(new(int)))
			return func() { require.NoError(t, tx.Rollback()); require.NoError(t, db.Close()) }
		},
		"another process writes": func(t *testing.T, dir string, _ *lineage.Store) func() {
			db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, search.FileName)+"?_txlock=immediate")
			require.NoError(t, err)
			tx, err := db.Begin()
			require.NoError(t, err)
			return func() { require.NoError(t, tx.Rollback()); require.NoError(t, db.Close()) }
		},
		"made before files could shrink": func(t *testing.T, dir string, _ *lineage.Store) func() {
			execIn(t, dir, `PRAGMA auto_vacuum = 0; VACUUM`)
			return func() {}
		},
		"another format": func(t *testing.T, dir string, _ *lineage.Store) func() {
			execIn(t, dir, `PRAGMA user_version = 1`)
			return func() {}
		},
		"a newer format": func(t *testing.T, dir string, _ *lineage.Store) func() {
			execIn(t, dir, `PRAGMA user_version = 1000`)
			return func() {}
		},
		"another store": func(t *testing.T, dir string, _ *lineage.Store) func() {
			execIn(t, dir, `UPDATE meta SET store = randomblob(16)`)
			return func() {}
		},
		"another history": func(t *testing.T, dir string, _ *lineage.Store) func() {
			execIn(t, dir, `UPDATE meta SET id = id + 1, seen_id = seen_id + 1`)
			return func() {}
		},
		"damaged": func(t *testing.T, dir string, _ *lineage.Store) func() {
			execIn(t, dir, `DROP TABLE roles`)
			return func() {}
		},
		"few of the commits": func(t *testing.T, _ string, store *lineage.Store) func() {
			for range 20 {
				newMain(t, store, lineage.User("cat"))
			}
			return func() {}
		},
		"not a file": func(t *testing.T, dir string, _ *lineage.Store) func() {
			removeIndex(t, dir)
			require.NoError(t, os.Symlink("elsewhere", filepath.Join(dir, search.FileName)))
			return func() {}
		},
		"no file": func(t *testing.T, dir string, _ *lineage.Store) func() { removeIndex(t, dir); return func() {} },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Prune: search.Prune})
			require.NoError(t, err)
			defer func() { require.NoError(t, store.Close()) }()
			x, err := search.Open(bg, store, dir, search.Options{})
			require.NoError(t, err)
			newMain(t, store, lineage.User("an ant"))
			thread, _ := newMain(t, store, lineage.User(secret(0)))
			require.Len(t, found(t, x, "ant"), 1)
			require.NoError(t, x.Close())
			end := spoil(t, dir, store)
			require.NoError(t, thread.Delete(bg))
			collect(t, store)
			requireNoSecret(t, dir)
			require.NoFileExists(t, filepath.Join(dir, search.FileName))
			end()
			requireNoSecret(t, dir)
			x, err = search.Open(bg, store, dir, search.Options{})
			require.NoError(t, err)
			require.Len(t, found(t, x, "ant"), 1)
			requireRebuilt(t, store, dir)
			require.NoError(t, x.Close())
		})
	}
}

// execIn executes statements in the index of a directory.
func execIn(t testing.TB, dir, statements string) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, search.FileName))
	require.NoError(t, err)
	_, err = db.Exec(statements)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// A collection that is cancelled while the index is pruned leaves nothing in it, although the process goes on.
func TestCancelledWhilePruning(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(bg)
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Prune: func(ctx context.Context, dir string, e backend.Engine) error {
		cancel()
		return search.Prune(ctx, dir, e)
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	x, err := search.Open(bg, store, dir, search.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	newMain(t, store, lineage.User("an ant"))
	thread, _ := newMain(t, store, lineage.User(secret(0)))
	require.Len(t, found(t, x, "ant"), 1)
	require.NoError(t, thread.Delete(bg))
	_, err = store.Collect(ctx, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	if err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	requireNoSecret(t, dir)
	require.Len(t, found(t, x, "ant"), 1)
}

// countedSummaries counts the summaries that its snapshots yield.
type countedSummaries struct {
	backend.Engine
	yielded int
}

func (e *countedSummaries) StoreID() [16]byte { return e.Engine.(backend.Identified).StoreID() }

func (e *countedSummaries) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	s, err := e.Engine.Snapshot(ctx)
	return countedSnapshot{s, e}, err
}

type countedSnapshot struct {
	backend.Snapshot
	engine *countedSummaries
}

func (s countedSnapshot) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return func(yield func(*structure.Summary, error) bool) {
		for r, err := range s.Snapshot.Summaries(ctx, id) {
			if s.engine.yielded++; !yield(r, err) {
				return
			}
		}
	}
}

// Pruning reads each summary once, however many a context has.
func TestPruningReadsSummariesOnce(t *testing.T) {
	dir := t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	x, err := search.Open(bg, store, dir, search.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	_, main := newMain(t, store, lineage.User("an ant"))
	const summaries = 20
	for i := range summaries {
		_, err := main.Summarize(bg, searchtest.Saying(fmt.Sprint("of the ant ", i)), lineage.SummarizeOptions{})
		require.NoError(t, err)
		_, err = main.Extend(bg, lineage.User("a bee"))
		require.NoError(t, err)
	}
	require.NoError(t, x.Update(bg))
	e := &countedSummaries{Engine: write.Inner(write.Of(store).Engine())}
	require.NoError(t, search.Prune(bg, dir, e))
	require.Equal(t, summaries, e.yielded)
	requireRebuilt(t, store, dir)
}

// While the file of a pruned index shrinks, other processes write to it: searches that bring it up to date do not wait for all of it.
func TestOthersWriteWhileTheIndexShrinks(t *testing.T) {
	defer func(was int) { derivedfile.SomePages, derivedfile.BetweenParts = was, nil }(derivedfile.SomePages)
	dir := t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Prune: search.Prune})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	x, err := search.Open(bg, store, dir, search.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	newMain(t, store, lineage.User("an ant"))
	deleted, _ := newMain(t, store, lineage.User(secret(0)))
	_, main := newMain(t, store, lineage.User("a bee"))
	for i := range 100 {
		_, err := main.Extend(bg, lineage.User(strings.ReplaceAll(secret(i), "voynich", "word")))
		require.NoError(t, err)
	}
	require.NoError(t, x.Update(bg))
	require.NoError(t, deleted.Delete(bg))
	parts := 0
	derivedfile.SomePages, derivedfile.BetweenParts = 1, func() {
		if parts++; parts <= 12 {
			_, err := main.Extend(bg, lineage.User(fmt.Sprint("a cat ", parts)))
			require.NoError(t, err)
			require.NoError(t, x.Update(bg))
		}
	}
	require.NotContains(t, collect(t, store).Removed, search.FileName)
	require.Greater(t, parts, 12)
	requireNoSecret(t, dir)
	requireRebuilt(t, store, dir)
	require.Len(t, found(t, x, "cat"), 12)
}
