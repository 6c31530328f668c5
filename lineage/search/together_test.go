package search_test

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived/derivedtest"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/search/searchtest"
)

// openLate opens a second index on the file of another, whose snapshots are late.
func openLate(t testing.TB, store *lineage.Store, dir string, o search.Options) (*derivedtest.Late, *search.Index) {
	l, late := derivedtest.NewLate(store)
	x, err := search.Open(bg, late, dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return l, x
}

// fileOf returns the identity of the file of an index.
func fileOf(t testing.TB, dir string) os.FileInfo {
	info, err := os.Stat(filepath.Join(dir, search.FileName))
	require.NoError(t, err)
	return info
}

// indexedIn returns what an index has of everything that is seen, without its internal numbers.
func indexedIn(t testing.TB, dir string) []string { return rowsIn(t, dir, "r.last") }

// rowsIn is indexedIn with another last step of a run.
func rowsIn(t require.TestingT, dir, last string) []string {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, search.FileName))
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query(`SELECT 'usage ' || hex(x.id) || ' ' || hex(r.id) || ' ' || u.seq || ' ' || u.head || ' ' || o.kind || o.name || ' ' || u.words
			FROM usages u JOIN texts x ON x.number = u.text JOIN runs r ON r.number = u.run AND u.seq <= r.reached JOIN roles o ON o.number = u.role
			WHERE x.number IN (SELECT rowid FROM terms)
		UNION ALL SELECT 'run ' || hex(r.id) || ' ' || IFNULL((SELECT hex(p.id) FROM runs p WHERE p.number = r.parent), '') || ' ' || r.after || ' ' || ` + last + ` || ' ' || r.reached
			FROM runs r WHERE r.reached > 0
		UNION ALL SELECT 'tip ' || hex(p.id) || ' ' || IFNULL((SELECT hex(t.id) || t.user || t.keeps FROM threads t WHERE t.number = p.thread), '') || ' ' || hex(r.id) || ' ' || p.seq
			FROM tips p JOIN runs r ON r.number = p.run
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

// requireRebuilt compares an index with one that is built at once.
func requireRebuilt(t testing.TB, store *lineage.Store, dir string) {
	fresh := t.TempDir()
	x, err := search.Open(bg, store, fresh, search.Options{})
	require.NoError(t, err)
	require.NoError(t, x.Update(bg))
	require.NoError(t, x.Close())
	require.Equal(t, indexedIn(t, fresh), indexedIn(t, dir))
}

// forkAndGoOn forks a context, and extends the fork.
func forkAndGoOn(t testing.TB, c *lineage.Context, texts ...string) {
	fork, err := c.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	for _, text := range texts {
		_, err = fork.Extend(bg, lineage.User(text))
		require.NoError(t, err)
	}
}

// Another handle updates the index between a snapshot and its use. The index does not go back.
func TestSnapshotOlderThanTheIndex(t *testing.T) {
	c, store, x, dir := openNearest(t)
	thread, main := newMain(t, store, lineage.User("ant"))
	l, y := openLate(t, store, dir, c.options())
	require.Len(t, nearest(t, y, 1, 0, 0, 0), 1)
	file := fileOf(t, dir)
	for i, change := range []func(){
		func() { forkAndGoOn(t, main, "bee", "cat") },
		func() { require.NoError(t, thread.Delete(bg)) },
	} {
		_, err := main.Extend(bg, lineage.User("ant ant"))
		require.NoError(t, err)
		l.Snapshotted = func() {
			change()
			nearest(t, x, 1, 0, 0, 0)
		}
		require.NoError(t, y.Update(bg), i)
		requireRebuilt(t, store, dir)
		require.NoError(t, y.Update(bg), i)
		forkless, err := store.NewContext(bg, lineage.ContextOptions{})
		require.NoError(t, err)
		_, err = forkless.Extend(bg, lineage.User("sum"))
		require.NoError(t, err)
		nearest(t, y, 1, 0, 0, 0)
		requireRebuilt(t, store, dir)
	}
	require.True(t, os.SameFile(file, fileOf(t, dir)), "the index was rebuilt")
	require.ElementsMatch(t, []string{"ant", "ant ant", "bee", "cat", "sum"}, c.embedded)
}

// A handle with an old snapshot meets an index that another one has updated in part: it is complete only for a
// newer snapshot.
func TestSnapshotOlderThanPartOfTheIndex(t *testing.T) {
	dir := t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	_, main := newMain(t, store, lineage.User("ant"))
	l, y := openLate(t, store, dir, search.Options{})
	require.NoError(t, y.Update(bg))
	inPart, goOn, updated := make(chan struct{}), make(chan struct{}), make(chan error)
	x, err := search.Open(bg, store, dir, search.Options{Progress: func(done, total uint64) {
		close(inPart)
		<-goOn
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	file := fileOf(t, dir)
	l.Snapshotted = func() {
		forkAndGoOn(t, main, strings.Repeat("cat ", 3<<20), "bee", "dog")
		go func() { updated <- x.Update(bg) }()
		<-inPart
	}
	require.NoError(t, y.Update(bg))
	requireRebuilt(t, store, dir)
	require.Equal(t, []string{"<mark>dog</mark>"}, found(t, y, "dog"))
	close(goOn)
	require.NoError(t, <-updated)
	requireRebuilt(t, store, dir)
	require.True(t, os.SameFile(file, fileOf(t, dir)), "the index was rebuilt")
}

// A search does not use an index that another handle has updated in part since. It completes the update first.
func TestSearchOfPartOfAnUpdate(t *testing.T) {
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	searched.WindowLimit = 1
	dir := t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	_, main := newMain(t, store, lineage.User("ant"))
	l, y := openLate(t, store, dir, search.Options{})
	require.NoError(t, y.Update(bg))
	inPart, goOn, updated := make(chan struct{}), make(chan struct{}), make(chan error)
	var once sync.Once
	x, err := search.Open(bg, store, dir, search.Options{Progress: func(done, total uint64) {
		once.Do(func() { close(inPart); <-goOn })
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	resume := sync.OnceFunc(func() { close(goOn) })
	defer resume()
	l.Asked = func() {
		require.NoError(t, main.MoveTo(bg, lineage.SpanRef{}, "rewind"))
		_, err := main.Extend(bg, lineage.User("another ant"))
		require.NoError(t, err)
		go func() { updated <- x.Update(bg) }()
		<-inPart
	}
	require.Equal(t, []string{"another <mark>ant</mark>"}, found(t, y, "ant"))
	resume()
	require.NoError(t, <-updated)
	requireRebuilt(t, store, dir)
}

// change extends, forks, deletes and erases.
func change(t testing.TB, store *lineage.Store, i int) {
	thread, main := newMain(t, store, lineage.User(fmt.Sprintf("first ant of %d", i)))
	_, err := main.Extend(bg, lineage.Assistant(fmt.Sprintf("bee %d", i)))
	require.NoError(t, err)
	forkAndGoOn(t, main, fmt.Sprintf("cat %d", i), "common ant")
	switch i % 5 {
	case 2:
		require.NoError(t, thread.Delete(bg))
	case 4:
		_, err = main.Summarize(bg, searchtest.Saying(fmt.Sprintf("sum %d", i)), lineage.SummarizeOptions{Whole: true})
		require.NoError(t, err)
	}
}

// Two handles of an index search while the store changes.
func TestTwoHandlesSearch(t *testing.T) {
	c, store, x, dir := openNearest(t)
	d := &counter{}
	_, y := openLate(t, store, dir, d.options())
	file := fileOf(t, dir)
	end := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			in := []*search.Index{x, y}[i%2]
			for {
				_, err := in.Search(bg, search.Query{Text: "ant"})
				if err == nil && i < 2 {
					_, err = in.Search(bg, search.Query{Vector: []float32{1, 0, 0, 0}})
				}
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case <-end:
					return
				default:
				}
			}
		})
	}
	for i := range 60 {
		change(t, store, i)
	}
	close(end)
	wg.Wait()
	nearest(t, x, 1, 0, 0, 0)
	requireRebuilt(t, store, dir)
	require.True(t, os.SameFile(file, fileOf(t, dir)), "the index was rebuilt")
	requireDistinct(t, c.embedded, d.embedded)
}

// requireDistinct fails if a text is in the lists more than once.
func requireDistinct(t testing.TB, lists ...[]string) {
	all := slices.Sorted(slices.Values(slices.Concat(lists...)))
	require.NotEmpty(t, all)
	require.Equal(t, slices.Compact(slices.Clone(all)), all, "a text was embedded twice")
}

// Two processes search while a third one changes the store.
func TestTwoProcessesSearch(t *testing.T) {
	const worker, embedded = "LINEAGE_SEARCH_WORKER", "embedded: "
	if dir := os.Getenv(worker); dir != "" {
		store, err := lineage.Open(bg, dir, lineage.Options{Wait: time.Minute})
		require.NoError(t, err)
		c := &counter{}
		x, err := search.Open(bg, store, dir, c.options())
		require.NoError(t, err)
		fmt.Println("ready")
		for last := false; !last; {
			last = len(found(t, x, "theend")) > 0
			nearest(t, x, 1, 0, 0, 0)
		}
		require.NoError(t, x.Close())
		require.NoError(t, store.Close())
		for _, text := range c.embedded {
			fmt.Println(embedded + text)
		}
		return
	}
	_, store, x, dir := openNearest(t)
	file := fileOf(t, dir)
	outputs := make(chan string, 2)
	var ready sync.WaitGroup
	for range 2 {
		ready.Add(1)
		go func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestTwoProcessesSearch$", "-test.count=1")
			cmd.Env = append(os.Environ(), worker+"="+dir)
			w := &readyWriter{ready: ready.Done}
			cmd.Stdout, cmd.Stderr = w, w
			if err := cmd.Run(); err != nil {
				t.Errorf("%v: %s", err, w.all.String())
			}
			w.once.Do(w.ready)
			outputs <- w.all.String()
		}()
	}
	ready.Wait()
	for i := range 40 {
		change(t, store, i)
	}
	newMain(t, store, lineage.User("theend"))
	var texts [][]string
	for range 2 {
		var names []string
		for line := range strings.Lines(<-outputs) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), embedded); ok {
				names = append(names, text)
			}
		}
		texts = append(texts, names)
	}
	require.NoError(t, x.Update(bg))
	requireRebuilt(t, store, dir)
	require.True(t, os.SameFile(file, fileOf(t, dir)), "the index was rebuilt")
	requireDistinct(t, texts...)
}

// readyWriter keeps the output of a process, and reports its first.
type readyWriter struct {
	all   strings.Builder
	once  sync.Once
	ready func()
}

func (w *readyWriter) Write(p []byte) (int, error) {
	w.once.Do(w.ready)
	return w.all.Write(p)
}

// TestSearchDuringUpdate searches while another goroutine of the same index is in the middle of an update.
func TestSearchDuringUpdate(t *testing.T) {
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	searched.WindowLimit = 1
	dir := t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	defer store.Close()
	c, err := store.NewContext(bg, lineage.ContextOptions{})
	require.NoError(t, err)
	for range 2 {
		_, err = c.Extend(bg, lineage.User("a walrus"))
		require.NoError(t, err)
	}
	reached, goOn := make(chan uint64), make(chan struct{})
	x, err := search.Open(bg, store, dir, search.Options{Progress: func(done, _ uint64) { reached <- done; <-goOn }})
	require.NoError(t, err)
	defer x.Close()
	updated := make(chan error)
	go func() { updated <- x.Update(bg) }()
	for done := uint64(0); done < 2; goOn <- struct{}{} {
		if done = <-reached; done == 2 {
			behind := uint64(0)
			hits, err := x.Search(bg, search.Query{Text: "walrus", UpdateFor: 1, Behind: func(commits uint64, _ error) { behind = commits }})
			require.NoError(t, err)
			require.Len(t, hits, 1)
			require.EqualValues(t, 1, behind)
		}
	}
	require.NoError(t, <-updated)
	hits, err := x.Search(bg, search.Query{Text: "walrus"})
	require.NoError(t, err)
	require.Len(t, hits, 2)
}
