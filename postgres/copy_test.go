package postgres

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// copied is a store of a test of copying, on a server or in a directory.
func copied(t testing.TB, pool *pgxpool.Pool, name string, id structure.StoreID) *lineage.Store {
	t.Helper()
	e, err := New(background, pool, Options{Store: name, Unsafe: true, ID: id})
	require.NoError(t, err)
	s := lineage.New(e)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func inDirectory(t testing.TB, dir string, id structure.StoreID) *lineage.Store {
	t.Helper()
	s, err := lineage.Open(background, dir, lineage.Options{SegmentSize: 16 << 10, NoPacking: true, ID: id})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// talk adds a thread with a branch and messages, one of them large.
func talk(t testing.TB, s *lineage.Store, name string, messages int) *lineage.Thread {
	t.Helper()
	thread, err := s.CreateThread(background, lineage.ThreadOptions{SourceID: name, Title: name})
	require.NoError(t, err)
	main, err := thread.Active(background)
	require.NoError(t, err)
	for i := range messages {
		body := fmt.Sprintf("%s says %d", name, i)
		if i == 1 {
			body = strings.Repeat(name+" is a long story. ", 10_000)
		}
		_, err = main.Extend(background, lineage.User(body))
		require.NoError(t, err)
	}
	fork, err := main.Fork(background, lineage.ForkOptions{})
	require.NoError(t, err)
	_, err = fork.Extend(background, lineage.User("say it otherwise"))
	require.NoError(t, err)
	return thread
}

// commitsOf returns the commits of a store, one line each.
func commitsOf(t testing.TB, s *lineage.Store) (lines []string) {
	t.Helper()
	var encoder structure.Encoder
	for c, err := range s.View().Feed(background, backend.Cursor{}) {
		require.NoError(t, err)
		payload, _, err := encoder.Encode(c)
		require.NoError(t, err)
		lines = append(lines, fmt.Sprintf("%d %x %x", c.Number, c.ID, payload))
	}
	return lines
}

// requireCopy compares every commit, the ids and the digests of two stores, and verifies the second.
func requireCopy(t testing.TB, want, got *lineage.Store) {
	t.Helper()
	require.Equal(t, want.ID(), got.ID())
	require.Equal(t, commitsOf(t, want), commitsOf(t, got))
	digests := func(s *lineage.Store) map[lineage.ContextID]structure.Digest {
		all := make(map[lineage.ContextID]structure.Digest)
		for c, err := range s.Contexts(background) {
			require.NoError(t, err)
			all[c.ID()], err = c.Digest(background)
			require.NoError(t, err)
		}
		return all
	}
	require.Equal(t, digests(want), digests(got))
	requireFaultless(t, got)
}

func requireFaultless(t testing.TB, s *lineage.Store) {
	t.Helper()
	for f, err := range s.Verify(background, lineage.VerifyOptions{Deep: true}) {
		require.NoError(t, err)
		require.Fail(t, "finding", f.String())
	}
}

func copyTo(t testing.TB, from, to *lineage.Store) lineage.CopyReport {
	t.Helper()
	var done, total int64
	report, err := lineage.Copy(background, from, to, lineage.CopyOptions{Progress: func(d, of int64) {
		require.GreaterOrEqual(t, d, done)
		done, total = d, of
	}})
	require.NoError(t, err)
	require.EqualValues(t, report.Commit, done)
	require.EqualValues(t, report.Commit, total)
	return report
}

// TestCopy copies a store with erased, collected and packed commits to a server and back, and
// between places of one kind, and continues the copies when the store has grown.
//
//test:norace
func TestCopy(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	dir := t.TempDir()
	source := inDirectory(t, filepath.Join(dir, "source"), structure.StoreID{})
	talk(t, source, "ada", 30)
	gone := talk(t, source, "bob", 10)
	require.NoError(t, source.Erase(background, content.Sum([]byte("ada says 3"))))
	require.NoError(t, gone.Delete(background))
	_, err := source.Collect(background, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
	require.NoError(t, err)
	talk(t, source, "cid", 30)
	_, err = source.Pack(background, lineage.PackOptions{All: true})
	require.NoError(t, err)
	require.NoError(t, source.Erase(background, content.Sum([]byte("cid says 3")))) // and not collected
	talk(t, source, "dan", 5)
	requireFaultless(t, source)

	served := copied(t, pool, "served", source.ID())
	back := inDirectory(t, filepath.Join(dir, "back"), source.ID())
	beside := inDirectory(t, filepath.Join(dir, "beside"), source.ID())
	again := copied(t, pool, "again", source.ID())
	pairs := [][2]*lineage.Store{{source, served}, {served, back}, {source, beside}, {served, again}}
	for _, p := range pairs {
		report := copyTo(t, p[0], p[1])
		require.Equal(t, report.Commit, report.Added)
		requireCopy(t, source, p[1])
		require.Zero(t, copyTo(t, p[0], p[1]).Added, "all of it is there")
	}
	// The source has collected what the copies still have.
	require.NoError(t, mustFind(t, source, "dan").Delete(background))
	_, err = source.Collect(background, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
	require.NoError(t, err)
	talk(t, source, "dan", 5) // says the same again
	for _, p := range pairs {
		require.Positive(t, copyTo(t, p[0], p[1]).Added)
		requireFaultless(t, p[1])
		digest := func(s *lineage.Store) structure.Digest {
			c, err := mustFind(t, s, "dan").Active(background)
			require.NoError(t, err)
			d, err := c.Digest(background)
			require.NoError(t, err)
			all, err := c.All(background)
			require.NoError(t, err)
			for _, entry := range all {
				require.Contains(t, entry.Excerpt(), " ")
			}
			return d
		}
		require.Equal(t, digest(source), digest(p[1]))
	}
	// A store that was made before has its own id.
	for name, to := range map[string]*lineage.Store{"server": copied(t, pool, "own", structure.StoreID{}), "directory": inDirectory(t, filepath.Join(dir, "own"), structure.StoreID{})} {
		copyTo(t, source, to)
		require.Equal(t, commitsOf(t, source), commitsOf(t, to), name)
		require.NotEqual(t, source.ID(), to.ID())
	}
}

func mustFind(t testing.TB, s *lineage.Store, sourceID string) *lineage.Thread {
	t.Helper()
	thread, err := s.FindThread(background, sourceID)
	require.NoError(t, err)
	return thread
}

// TestCopyRefused copies into stores that are no beginnings of a copy: they stay as they are.
//
//test:norace
func TestCopyRefused(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	dir := t.TempDir()
	source := inDirectory(t, filepath.Join(dir, "source"), structure.StoreID{})
	talk(t, source, "ada", 10)
	n := 0
	places := map[string]func() *lineage.Store{
		"server":    func() *lineage.Store { n++; return copied(t, pool, fmt.Sprint(n), source.ID()) },
		"directory": func() *lineage.Store { n++; return inDirectory(t, filepath.Join(dir, fmt.Sprint(n)), source.ID()) },
	}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			refused := func(to *lineage.Store, want error) {
				t.Helper()
				before := commitsOf(t, to)
				_, err := lineage.Copy(background, source, to, lineage.CopyOptions{})
				require.ErrorIs(t, err, want)
				require.Equal(t, before, commitsOf(t, to))
			}
			another := place()
			talk(t, another, "bob", 1)
			refused(another, lineage.ErrDiverged)
			longer := place()
			talk(t, longer, "bob", 50)
			refused(longer, lineage.ErrDiverged)
			continued := place()
			copyTo(t, source, continued)
			talk(t, continued, "bob", 1)
			refused(continued, lineage.ErrDiverged)
			talk(t, source, name, 1)
			refused(continued, lineage.ErrDiverged)
		})
	}
	collected := places["directory"]()
	copyTo(t, source, collected)
	_, err := collected.Collect(background, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
	require.NoError(t, err)
	talk(t, source, "more", 1)
	copyTo(t, source, collected) // nothing was removed
	gone := talk(t, source, "gone", 3)
	require.NoError(t, gone.Delete(background))
	copyTo(t, source, collected)
	_, err = collected.Collect(background, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
	require.NoError(t, err)
	require.Zero(t, copyTo(t, source, collected).Added)
	talk(t, source, "gone again", 3)
	for range 2 {
		_, err = lineage.Copy(background, source, collected, lineage.CopyOptions{})
		require.ErrorIs(t, err, lineage.ErrCollected)
		require.NoError(t, collected.Close())
		collected = inDirectory(t, filepath.Join(dir, fmt.Sprint(n)), source.ID())
	}
	// A store that another process has open.
	guest, err := lineage.Open(background, filepath.Join(dir, fmt.Sprint(n)), lineage.Options{})
	require.NoError(t, err)
	defer guest.Close()
	_, err = lineage.Copy(background, source, guest, lineage.CopyOptions{})
	require.ErrorContains(t, err, "another process")
}

// TestCopyOfAGrowingStore copies while the store is written to, and from two processes at once: each
// copy is a beginning of the history.
func TestCopyOfAGrowingStore(t *testing.T) {
	dsn := pgtest.DSN(t)
	dir := t.TempDir()
	source := inDirectory(t, filepath.Join(dir, "source"), structure.StoreID{})
	thread := talk(t, source, "ada", 200)
	main, err := thread.Active(background)
	require.NoError(t, err)
	directory := inDirectory(t, filepath.Join(dir, "copy"), source.ID())
	targets := [][]*lineage.Store{
		{directory},
		{copied(t, newPool(t, dsn, nil), "s", source.ID()), copied(t, newPool(t, dsn, nil), "s", source.ID())},
	}
	enough := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range 1000 {
			select {
			case <-enough:
				return
			default:
			}
			_, err := main.Extend(background, lineage.User(fmt.Sprint("meanwhile ", i)))
			if err != nil {
				t.Errorf("%v", err)
				return
			}
		}
	})
	for _, same := range targets {
		for range 3 {
			parallel(len(same), func(i int) {
				before, err := source.View().Head(background)
				if err == nil {
					var report lineage.CopyReport
					if report, err = lineage.Copy(background, source, same[i], lineage.CopyOptions{}); err == nil && report.Commit < before.Number {
						err = fmt.Errorf("copied %d commits of %d", report.Commit, before.Number)
					}
				}
				if err != nil {
					t.Errorf("%v", err)
				}
			})
		}
	}
	close(enough)
	writing.Wait()
	all := commitsOf(t, source)
	for _, same := range targets {
		got := commitsOf(t, same[0])
		require.NotEmpty(t, got)
		require.Equal(t, all[:len(got)], got)
		requireFaultless(t, same[0])
		copyTo(t, source, same[0])
		requireCopy(t, source, same[0])
	}
}

// Variables of the process that TestKilledCopy kills.
const (
	copyFrom, copyDSN, copyDir = "LINEAGE_TEST_COPY_FROM", "LINEAGE_TEST_COPY_DSN", "LINEAGE_TEST_COPY_TO"
	copyWord, copyEnd          = "LINEAGE_TEST_COPY_WORD", "LINEAGE_TEST_COPY_END"
)

// TestKilledCopy kills processes that copy a store, at any point: another continues.
func TestKilledCopy(t *testing.T) {
	if dir := os.Getenv(copyFrom); dir != "" {
		killedCopy(t, dir)
		return
	}
	dsn := pgtest.DSN(t)
	dir := t.TempDir()
	source := inDirectory(t, filepath.Join(dir, "source"), structure.StoreID{})
	talk(t, source, "ada", 1500)
	require.NoError(t, source.Close())
	for name, environment := range map[string][]string{"server": {copyDSN + "=" + dsn}, "directory": {copyDir + "=" + filepath.Join(dir, "to")}} {
		t.Run(name, func(t *testing.T) {
			killed := 0
			for at := int64(1); ; at += 350 {
				if !killAt(t, at, append(environment, copyFrom+"="+filepath.Join(dir, "source"))) {
					break
				}
				killed++
			}
			require.Positive(t, killed)
			source := inDirectory(t, filepath.Join(dir, "source"), structure.StoreID{})
			defer source.Close()
			to := copied(t, newPool(t, dsn, nil), "s", source.ID())
			if name == "directory" {
				to = inDirectory(t, filepath.Join(dir, "to"), source.ID())
			}
			require.Zero(t, copyTo(t, source, to).Added)
			requireCopy(t, source, to)
		})
	}
}

// killedCopy copies a store, and says how far it is. At the end it waits until it is killed or told to end.
func killedCopy(t *testing.T, dir string) {
	source := inDirectory(t, dir, structure.StoreID{})
	var to *lineage.Store
	if dsn := os.Getenv(copyDSN); dsn != "" {
		to = copied(t, newPool(t, dsn, nil), "s", source.ID())
	} else {
		to = inDirectory(t, os.Getenv(copyDir), source.ID())
	}
	_, err := lineage.Copy(background, source, to, lineage.CopyOptions{Progress: func(done, total int64) { fmt.Println(copyWord, done) }})
	require.NoError(t, err)
	fmt.Println(copyEnd)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// TestInterruptedCopy ends a copy by its context: what was copied stays.
func TestInterruptedCopy(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	source := inDirectory(t, filepath.Join(t.TempDir(), "source"), structure.StoreID{})
	talk(t, source, "ada", 300)
	to := copied(t, pool, "s", source.ID())
	ctx, cancel := context.WithTimeoutCause(background, 10*time.Minute, nil)
	defer cancel()
	_, err := lineage.Copy(ctx, source, to, lineage.CopyOptions{Progress: func(done, _ int64) {
		if done == 100 {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	head, err := to.View().Head(background)
	require.NoError(t, err)
	require.GreaterOrEqual(t, head.Number, uint64(100))
	copyTo(t, source, to)
	requireCopy(t, source, to)
}

// TestReceivedAgain has the server lose a row that was received, and another process receive its commits in a longer
// one, which has the same number and id: a handle that knows the first does not write into it.
func TestReceivedAgain(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	source, err := embedded.Open(background, "", embedded.Options{InMemory: true})
	require.NoError(t, err)
	defer source.Close()
	for range 5 {
		_, c := threadCommit()
		_, err := source.Apply(background, c, backend.Options{})
		require.NoError(t, err)
	}
	receive := func(e *Engine, upTo uint64) {
		t.Helper()
		require.NoError(t, e.Receive(background, func(yield func(*structure.Commit, error) bool) {
			for c, err := range source.Feed(background, backend.Cursor{}) {
				if c.Number > upTo || !yield(c, err) {
					return
				}
			}
		}))
	}
	old, other := handle(t, pool, "s"), handle(t, pool, "s")
	receive(old, 3)
	lose(t, pool, "s", 1)
	receive(other, 5)
	require.EqualValues(t, 3, old.head.Number)
	_, at := createThread(t, old, backend.Full)
	require.EqualValues(t, 6, at.Number)
	require.Equal(t, history(t, other), history(t, old))
	requireSound(t, old)
}
