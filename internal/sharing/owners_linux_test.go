package sharing

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/localsocket"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// apply creates a thread.
func apply(t testing.TB, e backend.Engine, name string) {
	t.Helper()
	_, err := e.Apply(background, newThread(name), backend.Options{})
	require.NoError(t, err)
}

// threads counts the commits that created each thread.
func threads(t testing.TB, e backend.Engine) map[string]int {
	t.Helper()
	made := make(map[string]int)
	for c, err := range e.Feed(background, backend.Cursor{}) {
		require.NoError(t, err)
		for _, r := range c.Records {
			if got, ok := r.(*structure.Thread); ok {
				made[got.Title]++
			}
		}
	}
	return made
}

// TestTakingOver kills owners, and closes them. The guest becomes the owner, and nothing is lost.
//
//test:processes
func TestTakingOver(t *testing.T) {
	for _, end := range []struct {
		name string
		end  func(*child)
	}{
		{"killed", func(c *child) { c.kill(t) }},
		{"closed", func(c *child) { c.finish(t) }},
	} {
		t.Run(end.name, func(t *testing.T) {
			dir := t.TempDir()
			c := start(t, "hold "+dir)
			require.Equal(t, "ready true", c.line(t))
			e := open(t, dir, normal)
			apply(t, e, "one")
			role, err := e.Role(background)
			require.NoError(t, err)
			require.False(t, role.Owns)
			require.Equal(t, c.Process.Pid, role.Owner.PID)
			require.Len(t, role.Guests, 1)
			require.Equal(t, os.Getpid(), role.Guests[0].PID)
			end.end(c)
			apply(t, e, "two")
			role, err = e.Role(background)
			require.NoError(t, err)
			require.True(t, role.Owns)
			require.Equal(t, map[string]int{"one": 1, "two": 1}, threads(t, e))
		})
	}
}

// TestAppliedOnce has processes write while owners are killed. What was acknowledged is there, and
// nothing is there twice.
//
//test:processes
func TestAppliedOnce(t *testing.T) {
	dir := t.TempDir()
	const writers = 3
	var mu sync.Mutex
	acknowledged := make(map[string]bool)
	var reading sync.WaitGroup
	begin := func(name string) *child {
		c := start(t, "write "+dir+" "+name)
		first := c.line(t)
		reading.Go(func() {
			for line := first; ; {
				if strings.HasPrefix(line, "error") {
					t.Errorf("%s: %s", name, line)
				}
				mu.Lock()
				acknowledged[line] = true
				mu.Unlock()
				next, err := c.out.ReadString('\n')
				if err != nil {
					return
				}
				line = strings.TrimSpace(next)
			}
		})
		return c
	}
	var all []*child
	for i := range writers {
		all = append(all, begin(fmt.Sprint("w", i)))
	}
	e := open(t, dir, normal)
	for round := range campaign.Rounds(4) {
		role, err := e.Role(background)
		require.NoError(t, err)
		for i, c := range all { // the owner goes, or whoever is first where we are it
			if c.Process.Pid == role.Owner.PID || role.Owns && i == 0 {
				c.kill(t)
				all[i] = begin(fmt.Sprintf("r%d", round))
				break
			}
		}
		apply(t, e, fmt.Sprint("own", round))
		mu.Lock()
		acknowledged[fmt.Sprint("own", round)] = true
		mu.Unlock()
	}
	for _, c := range all {
		require.NoError(t, c.in.Close())
	}
	reading.Wait()
	for _, c := range all {
		require.NoError(t, c.Wait())
	}
	made := threads(t, e)
	for name := range acknowledged {
		require.Equal(t, 1, made[name], name)
	}
	for name, n := range made {
		require.Equal(t, 1, n, name)
	}
	require.Greater(t, len(made), 2*writers)
}

// TestStoppedOwner stops the owner with SIGSTOP. Deadlines hold, and the owner does not do expired
// requests when it continues.
func TestStoppedOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := start(t, "hold "+dir)
	require.Equal(t, "ready true", c.line(t))
	e := open(t, dir, normal)
	apply(t, e, "before")
	c.stop(t)
	begun := time.Now()
	for wait, sent := 3*time.Second, false; !sent; wait *= 2 { // the time may be over before the request was sent
		ctx, cancel := context.WithTimeout(background, wait)
		_, err := e.Apply(ctx, newThread("expired"), backend.Options{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		sent = errors.Is(err, backend.ErrUncertain)
		_, err = e.Head(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
		require.Less(t, time.Since(begun), hangs)
	}
	require.NoError(t, c.Process.Signal(syscall.SIGCONT))
	apply(t, e, "after")
	require.Equal(t, map[string]int{"before": 1, "after": 1}, threads(t, e))
	c.finish(t)
}

// TestInheritedLock has a process keep the lock of its parent without a socket. No other process
// becomes the owner before it exits.
func TestInheritedLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir, normal).Close()
	c := start(t, "lock "+dir)
	line := c.line(t)
	require.NoError(t, c.Wait())
	_, err := Open(background, dir, atOnce)
	require.ErrorIs(t, err, backend.ErrLocked, line)
	o := normal
	waiting := make(chan error, 1)
	o.Waiting = func(held error) { waiting <- held }
	opened := make(chan error, 1)
	go func() {
		e, err := Open(background, dir, o)
		if err == nil {
			err = e.Close()
		}
		opened <- err
	}()
	require.ErrorIs(t, <-waiting, backend.ErrLocked)
	require.NoError(t, c.in.Close())
	require.NoError(t, <-opened)
}

// TestNames replaces the socket by other kinds of files.
func TestNames(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for name, make := range map[string]func(path string) error{
		"a link":      func(path string) error { return os.Symlink(outside, path) },
		"a file":      func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		for _, file := range []string{embedded.SocketFile, newSocket} {
			dir := t.TempDir()
			open(t, dir, normal).Close()
			path := filepath.Join(dir, file)
			require.NoError(t, make(path), name)
			_, err := Open(background, dir, normal)
			require.ErrorIs(t, err, vfs.ErrNotRegular, "%s as %s", name, file)
			require.NotContains(t, err.Error(), "another process")
			_, err = os.Lstat(path)
			require.NoError(t, err, "it is still there")
			require.NoError(t, os.Remove(path))
			open(t, dir, normal).Close()
		}
	}
	require.NoFileExists(t, outside)
}

// TestStaleSocket opens a store whose owner was killed. The new socket is only for its user.
func TestStaleSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40), strings.Repeat("path", 40))
	c := start(t, "hold "+dir)
	require.Equal(t, "ready true", c.line(t))
	c.kill(t)
	require.NoError(t, requireSocket(filepath.Join(dir, embedded.SocketFile)))
	e := open(t, dir, normal)
	require.True(t, owns(e))
	info, err := os.Lstat(filepath.Join(dir, embedded.SocketFile))
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket|0o600, info.Mode())
	second := open(t, dir, normal)
	apply(t, second, "through a long path")
	require.NoError(t, second.Close())
	require.NoError(t, e.Close())
	require.NoFileExists(t, filepath.Join(dir, embedded.SocketFile))
}

// TestNotShared opens a store where sharing is not possible, or not wanted. Where it is not possible,
// no socket is waited for.
func TestNotShared(t *testing.T) {
	t.Parallel()
	foreign := atOnce
	foreign.isLocal = func(string) bool { return false }
	alone, apart := atOnce, atOnce
	alone.NeverServe, apart.NeverConnect = true, true
	for _, test := range []struct {
		owner, other Options
		why          string
	}{{foreign, foreign, localsocket.ErrUnsupported.Error()}, {alone, atOnce, embedded.SocketFile}, {normal, apart, ""}} {
		dir := t.TempDir()
		e := open(t, dir, test.owner)
		_, err := Open(background, dir, test.other)
		require.ErrorIs(t, err, backend.ErrLocked)
		require.ErrorContains(t, err, test.why)
		require.NoError(t, e.Close())
		open(t, dir, test.other)
	}
}

// TestReadOnlyGuest reads a store that another process has open, and writes nothing.
func TestReadOnlyGuest(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, normal)
	apply(t, e, "one")
	o := normal
	o.ReadOnly = true
	reader := open(t, dir, o)
	require.False(t, owns(reader))
	require.Equal(t, map[string]int{"one": 1}, threads(t, reader))
	_, err := reader.Apply(background, newThread("two"), backend.Options{})
	require.ErrorIs(t, err, backend.ErrReadOnly)
	_, err = reader.Collect(background, backend.CollectOptions{})
	require.ErrorIs(t, err, backend.ErrReadOnly)
}

// history fills a store with so many elements that each kind of sequence needs several answers.
func history(t testing.TB, e backend.Engine, n int) {
	t.Helper()
	run := structure.RunID{1}
	block := structure.NewBlock("text/plain", content.BlockOrigin{}, time.UnixMilli(1), []byte("said"))
	records := []structure.Record{block, &structure.Run{ID: run}}
	thread := threadID("t")
	apply(t, e, "t")
	for i := range n {
		ref := structure.SpanRef{Run: run, Seq: uint64(i + 1)}
		records = append(records,
			&structure.Span{Ref: ref, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: block.ID, CreatedAt: time.UnixMilli(1)}}},
			&structure.Context{ID: structure.ContextID{2, byte(i >> 8), byte(i)}, Thread: thread, Tip: ref},
			&structure.Branch{Thread: thread, Name: fmt.Sprintf("b%05d", i), Context: structure.ContextID{2, byte(i >> 8), byte(i)}},
			&structure.Run{ID: structure.RunID{3, byte(i >> 8), byte(i)}, Parent: structure.SpanRef{Run: run, Seq: 1}},
		)
	}
	_, err := e.Apply(background, &structure.Commit{Records: records}, backend.Options{})
	require.NoError(t, err)
	for i := range n {
		apply(t, e, fmt.Sprintf("thread %d", i))
	}
}

// sequencesOf returns the elements of sequences as text.
func sequencesOf(e backend.Reader, view backend.View, n int) map[string]iter.Seq2[string, error] {
	thread, run := threadID("t"), structure.RunID{1}
	return map[string]iter.Seq2[string, error]{
		"Threads":     spelled(e.Threads(background, structure.ThreadID{})),
		"ListThreads": spelled(e.ListThreads(background, backend.ThreadQuery{})),
		"Contexts":    spelled(e.Contexts(background, thread, structure.ContextID{})),
		"Branches":    spelled(e.Branches(background, thread, "", "")),
		"ForksAt":     spelled(e.ForksAt(background, structure.SpanRef{Run: run, Seq: 1})),
		"Path":        spelled(e.Path(background, structure.SpanRef{Run: run, Seq: uint64(n)}, structure.Window{Last: uint64(n - 2)}, backend.PathOptions{Bodies: true})),
		"Where":       spelled(e.Where(background, content.Sum([]byte("said")))),
		"Feed":        spelled(view.Feed(background, backend.Cursor{})),
	}
}

func spelled[T any](all iter.Seq2[T, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for v, err := range all {
			s := ""
			switch v := any(v).(type) {
			case *backend.Step:
				s = fmt.Sprint(v.Position, v.Span.Ref, len(v.Blocks))
			case *structure.Commit:
				s = fmt.Sprint(v.Number, v.ID, len(v.Records))
			case *structure.Thread:
				s = fmt.Sprint(*v)
			case *structure.Branch:
				s = fmt.Sprint(*v)
			case backend.ThreadListing:
				s = fmt.Sprint(*v.Thread)
			default:
				s = fmt.Sprint(v)
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// TestClosingUnderReaders closes an owner while a guest has a snapshot and reads sequences. The owner
// waits for neither. Sequences of the latest state continue, and snapshots expire.
func TestClosingUnderReaders(t *testing.T) {
	const n = 100
	dir := t.TempDir()
	owner := open(t, dir, normal)
	history(t, owner, n)
	e := open(t, dir, normal)
	snapshot, err := e.Snapshot(background)
	require.NoError(t, err)
	want := make(map[string][]string)
	for name, all := range sequencesOf(owner, owner, n) {
		for s, err := range all {
			require.NoError(t, err)
			want[name] = append(want[name], s)
		}
		require.Greater(t, len(want[name]), 90, name)
	}
	type reading struct {
		got  []string
		next func() (string, error, bool)
	}
	begun := make(map[string]*reading)
	sequences := sequencesOf(e, e, n)
	for name, all := range sequences {
		next, stop := iter.Pull2(all)
		defer stop()
		r := &reading{next: next}
		for range 20 { // in the middle of an answer
			s, err, _ := next()
			require.NoError(t, err, name)
			r.got = append(r.got, s)
		}
		begun[name] = r
	}
	ofSnapshot, stop := iter.Pull2(snapshot.Threads(background, structure.ThreadID{}))
	defer stop()
	_, err, _ = ofSnapshot()
	require.NoError(t, err)
	waiting := make(chan error, 1)
	head, err := e.Head(background)
	require.NoError(t, err)
	go func() {
		_, err := e.Wait(background, head)
		waiting <- err
	}()
	require.NoError(t, owner.Close())
	for name, r := range begun {
		for {
			s, err, ok := r.next()
			if !ok {
				break
			}
			require.NoError(t, err, name)
			r.got = append(r.got, s)
		}
		require.Equal(t, want[name], r.got, name)
	}
	for name, all := range sequences { // again, from the start
		var got []string
		for s, err := range all {
			require.NoError(t, err, name)
			got = append(got, s)
		}
		require.Equal(t, want[name], got, name)
	}
	for err = nil; err == nil; {
		_, err, _ = ofSnapshot()
	}
	require.ErrorIs(t, err, backend.ErrExpired)
	_, err = snapshot.Head(background)
	require.ErrorIs(t, err, backend.ErrExpired)
	apply(t, e, "wakes who waits")
	require.NoError(t, <-waiting)
}

// TestGivingUpUnderReaders has an owner lose its handle while it reads sequences, as it does when its
// disk fails. The sequences continue after their last element.
func TestGivingUpUnderReaders(t *testing.T) {
	const n = 100
	e := open(t, t.TempDir(), normal)
	history(t, e, n)
	for _, once := range []bool{true, false} { // or after every few elements
		want := make(map[string][]string)
		for name, all := range sequencesOf(e, e, n) {
			for s, err := range all {
				require.NoError(t, err)
				want[name] = append(want[name], s)
			}
		}
		for name, all := range sequencesOf(e, e, n) {
			var got []string
			for s, err := range all {
				require.NoError(t, err, name)
				if got = append(got, s); len(got) == 20 || !once && len(got)%30 == 0 {
					if h := e.current.Load(); h != nil {
						e.lose(h)
					}
				}
			}
			require.Equal(t, want[name], got, name)
		}
	}
}

// faultyFS is the file system of the system, in which syncs can be made to fail and the disk to be full.
type faultyFS struct {
	vfs.FS
	fail, full *atomic.Bool
}

type faultyFile struct {
	vfs.File
	faultyFS
}

func (f faultyFS) open(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return faultyFile{file, f}, nil
}

func (f faultyFS) OpenRW(name string) (vfs.File, error) { return f.open(f.FS.OpenRW(name)) }
func (f faultyFS) Create(name string) (vfs.File, error) { return f.open(f.FS.Create(name)) }

func (f faultyFile) Sync() error {
	if f.fail.Load() {
		return syscall.EIO
	}
	return f.File.Sync()
}

func (f faultyFile) WriteAt(b []byte, at int64) (int, error) {
	if f.full.Load() {
		n, _ := f.File.WriteAt(b[:len(b)/2], at)
		return n, syscall.ENOSPC
	}
	return f.File.WriteAt(b, at)
}

// TestFullDisk has an owner and its guests write while the disk is full. What they committed is kept,
// reads work, and writes work once there is space.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	o := normal
	o.FS = faultyFS{vfs.OS(), new(atomic.Bool), new(atomic.Bool)}
	full := o.FS.(faultyFS).full
	engines := []*Engine{open(t, dir, o), open(t, dir, o), open(t, dir, o)}
	reported := make(map[string]error)
	var mu sync.Mutex
	write := func(round string) {
		var all sync.WaitGroup
		for i, e := range engines {
			all.Go(func() {
				for n := range 20 {
					name := fmt.Sprint(round, " ", i, " ", n)
					ctx, cancel := context.WithTimeout(background, hangs)
					_, err := e.Apply(ctx, newThread(name), backend.Options{})
					cancel()
					mu.Lock()
					reported[name] = err
					mu.Unlock()
				}
			})
		}
		all.Wait()
	}
	for round := range 3 {
		write(fmt.Sprint(round, " before"))
		full.Store(true)
		write(fmt.Sprint(round, " full"))
		for _, e := range engines {
			require.NotEmpty(t, threads(t, e))
		}
		full.Store(false)
		require.Eventually(t, func() bool { // its owner may still give it up
			_, err := engines[1].Apply(background, newThread("room"), backend.Options{})
			return err == nil
		}, hangs, time.Millisecond)
	}
	made := threads(t, engines[0])
	failures := 0
	for name, err := range reported {
		switch {
		case err == nil:
			require.Equal(t, 1, made[name], name)
		case errors.Is(err, backend.ErrUncertain):
			require.LessOrEqual(t, made[name], 1, name)
			failures++
		default:
			require.Zero(t, made[name], "%s: %v", name, err)
			failures++
		}
	}
	require.Positive(t, failures)
}

// TestFailedDisk makes the disk fail during a commit of the owner or of a guest. The owner closes the
// store, which is writable again once the disk works.
func TestFailedDisk(t *testing.T) {
	for _, whose := range []string{"own", "guest"} {
		t.Run(whose, func(t *testing.T) {
			dir := t.TempDir()
			fail := new(atomic.Bool)
			o := normal
			o.FS, o.SyncInterval = faultyFS{vfs.OS(), fail, new(atomic.Bool)}, time.Hour // no other sync fails before the commit's
			owner, e := open(t, dir, o), open(t, dir, normal)
			if apply(t, owner, "before"); whose == "own" {
				owner, e = e, owner
			}
			fail.Store(true)
			_, err := e.Apply(background, newThread("during"), backend.Options{Durability: backend.Full})
			require.ErrorIs(t, err, backend.ErrUncertain)
			fail.Store(false)
			// The store may still be read-only while its owner gives it up.
			require.Eventually(t, func() bool {
				_, err := e.Apply(background, newThread("after"), backend.Options{Durability: backend.Full})
				if err != nil {
					require.True(t, errors.Is(err, backend.ErrReadOnly), "%v", err)
				}
				return err == nil
			}, hangs, time.Millisecond)
			for _, e := range []*Engine{owner, e} {
				made := threads(t, e)
				require.Equal(t, 1, made["before"])
				require.Equal(t, 1, made["after"])
				require.LessOrEqual(t, made["during"], 1)
			}
		})
	}
}

// TestManyGuests has many guests lose their owner at the same time. One of them becomes the owner.
func TestManyGuests(t *testing.T) {
	dir := t.TempDir()
	owner := open(t, dir, normal)
	var guests []*Engine
	for range 50 {
		guests = append(guests, open(t, dir, normal))
	}
	require.NoError(t, owner.Close())
	var all sync.WaitGroup
	for i, e := range guests {
		all.Go(func() {
			if _, err := e.Apply(background, newThread(fmt.Sprint(i)), backend.Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	owners := 0
	for _, e := range guests {
		if owns(e) {
			owners++
		}
	}
	require.Equal(t, 1, owners)
	made := threads(t, guests[0])
	require.Len(t, made, len(guests))
	for name, n := range made {
		require.Equal(t, 1, n, name)
	}
}

// TestClosedMeanwhile closes an engine while it searches for an owner.
func TestClosedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	c := start(t, "hold "+dir)
	require.Equal(t, "ready true", c.line(t))
	e := open(t, dir, normal)
	c.stop(t) // it answers nobody, and keeps the lock
	e.lose(e.current.Load())
	begun := make(chan error, 1)
	go func() {
		_, err := e.Head(background)
		begun <- err
	}()
	require.Eventually(t, func() bool { return e.current.Load() == nil }, hangs, time.Millisecond)
	require.NoError(t, e.Close())
	require.Error(t, <-begun)
	_, err := e.Head(background)
	require.ErrorIs(t, err, backend.ErrClosed)
	c.kill(t)
}
