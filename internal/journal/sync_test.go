package journal

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// watchedFS calls onSync before each Sync of a file.
type watchedFS struct {
	vfs.FS
	onSync func()
}

type watchedFile struct {
	vfs.File
	onSync func()
}

func (w watchedFS) Create(name string) (vfs.File, error) { return w.watch(w.FS.Create(name)) }
func (w watchedFS) OpenRW(name string) (vfs.File, error) { return w.watch(w.FS.OpenRW(name)) }

func (w watchedFS) watch(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return watchedFile{f, w.onSync}, nil
}

func (w watchedFile) Sync() error {
	w.onSync()
	return w.File.Sync()
}

// patience limits the wait for an event.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func await(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-patience(t).Done():
		require.Fail(t, what)
	}
}

func TestWaitersShareOneSync(t *testing.T) {
	const writers = 64
	var syncs atomic.Int64
	var blocking atomic.Bool
	entered, gate := make(chan struct{}), make(chan struct{})
	fsys := crashfs.New()
	o := options(watchedFS{fsys, func() {
		syncs.Add(1)
		if blocking.CompareAndSwap(true, false) {
			close(entered)
			<-gate
		}
	}})
	o.SegmentSize = 1 << 20
	j := open(t, o)
	syncs.Store(0)
	blocking.Store(true)

	appendAll(t, j, payload(1, 10))
	var synced sync.WaitGroup
	synced.Go(func() {
		if err := j.Sync(1); err != nil {
			t.Error(err)
		}
	})
	await(t, entered, "the first must sync")

	var appended sync.WaitGroup
	appended.Add(writers)
	for range writers {
		synced.Go(func() {
			f, err := j.Append([]byte("while the disk is busy"), nil, false)
			appended.Done()
			if err == nil {
				err = j.Sync(f.Number)
			}
			if err != nil || j.Durable() < f.Number {
				t.Error("not durable", f.Number, err)
			}
		})
	}
	appended.Wait()
	require.Zero(t, j.Durable())
	close(gate)
	synced.Wait()
	require.Equal(t, int64(2), syncs.Load(), "one for the first, one for all others")
	require.Equal(t, uint64(writers+1), j.Durable())
	require.NoError(t, j.Sync(writers+1))
	require.Equal(t, int64(2), syncs.Load(), "none for what is durable")
	require.Zero(t, fsys.UnsyncedOps())
}

// A sync covers what was written when it started, and no more.
func TestSyncCoversEarlierCommits(t *testing.T) {
	var j *Journal
	var during sync.Once
	fsys := crashfs.New()
	armed := false
	j = open(t, options(watchedFS{fsys, func() {
		if armed {
			during.Do(func() {
				if _, err := j.Append([]byte("late"), nil, false); err != nil {
					t.Error(err)
				}
			})
		}
	}}))
	appendAll(t, j, payload(1, 10))
	armed = true
	require.NoError(t, j.Sync(1))
	require.Equal(t, uint64(1), j.Durable())
	require.Equal(t, uint64(2), j.Last())
	require.NoError(t, j.Sync(2))
	require.Equal(t, uint64(2), j.Durable())
}

func TestFailedSyncReachesAllWaiters(t *testing.T) {
	const writers = 16
	var blocking atomic.Bool
	entered, gate := make(chan struct{}), make(chan struct{})
	fsys := crashfs.New()
	j := open(t, options(watchedFS{fsys, func() {
		if blocking.CompareAndSwap(true, false) {
			close(entered)
			<-gate
		}
	}}))
	for range writers {
		appendAll(t, j, payload(1, 10))
	}
	blocking.Store(true)
	fsys.FailSyncs(errDisk)
	errs := make([]error, writers)
	var waiting sync.WaitGroup
	for i := range writers {
		waiting.Go(func() { errs[i] = j.Sync(uint64(i + 1)) })
	}
	await(t, entered, "one must sync")
	close(gate)
	waiting.Wait()
	for _, err := range errs {
		require.ErrorIs(t, err, errDisk)
		require.ErrorIs(t, err, backend.ErrReadOnly)
	}
	require.Error(t, j.Close())
}

func TestNormalCommitsAreSyncedWithinTheInterval(t *testing.T) {
	synced := make(chan struct{}, 100)
	o := options(watchedFS{crashfs.New(), func() { synced <- struct{}{} }})
	o.SyncInterval = time.Millisecond
	j := open(t, o)
	<-synced // of the first header
	for i := range 5 {
		f, err := j.Append(payload(i, 50), nil, true)
		require.NoError(t, err)
		await(t, synced, "a sync must follow")
		require.NoError(t, j.Sync(f.Number)) // may have to wait for it to end
		require.Equal(t, f.Number, j.Durable())
	}
	require.NoError(t, j.Close())
}

func TestOtherCommitsAreNotSynced(t *testing.T) {
	fsys := crashfs.New()
	o := options(fsys)
	j := open(t, o)
	appendAll(t, j, payloads(10, 20)...)
	require.Nil(t, j.sync.timer)
	require.Equal(t, 2, fsys.UnsyncedOps())
	_, err := j.Append([]byte("x"), nil, true)
	require.NoError(t, err)
	require.NotNil(t, j.sync.timer)
	require.NoError(t, j.Close())
}

func TestFailedBackgroundSync(t *testing.T) {
	fsys := crashfs.New()
	o := options(fsys)
	o.SyncInterval = time.Millisecond
	told := make(chan struct{})
	o.Logger = logline.New(slog.LevelDebug, func(string) { close(told) })
	j := open(t, o)
	fsys.FailSyncs(errDisk)
	_, err := j.Append([]byte("x"), nil, true)
	require.NoError(t, err)
	await(t, told, "a failed sync is logged")
	_, err = j.Append([]byte("y"), nil, true)
	require.ErrorIs(t, err, backend.ErrReadOnly)
	require.ErrorIs(t, j.Close(), errDisk)
}

func TestManyWritersAndReaders(t *testing.T) {
	const writers, each = 64, 20
	fsys := crashfs.New()
	o := options(fsys)
	o.SegmentSize = 32 << 10
	o.SyncInterval = time.Millisecond
	j := open(t, o)
	var mu sync.Mutex
	want := map[uint64][]byte{}
	var writing, reading sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				body := []byte(fmt.Sprintf("writer %d commit %d %s", w, i, bytes.Repeat([]byte("."), w*8)))
				f, err := j.Append(body, nil, i%3 == 0)
				if err == nil && i%3 != 0 {
					err = j.Sync(f.Number)
				}
				if err != nil || i%3 != 0 && j.Durable() < f.Number {
					t.Error("append", f.Number, err)
					return
				}
				got, err := j.NewReader().Frame(f.Position)
				if err != nil || got.Number != f.Number || !bytes.Equal(got.Payload, body) {
					t.Error("read back", f.Number, err)
					return
				}
				mu.Lock()
				want[f.Number] = body
				mu.Unlock()
			}
		})
	}
	stop := make(chan struct{})
	for range 4 {
		reading.Go(func() {
			for {
				if _, err := stored(j); err != nil {
					t.Error("frames", err)
					return
				}
				j.End()
				j.Size()
				j.Find(j.Last())
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	reading.Wait()
	require.NoError(t, j.Close())

	j = open(t, options(fsys.Crash(crashfs.KeepNone())))
	got, err := stored(j)
	require.NoError(t, err)
	require.Len(t, got, writers*each)
	for i, body := range got {
		require.Equal(t, string(want[uint64(i+1)]), string(body))
	}
}

func TestCloseWhileInUse(t *testing.T) {
	for range 8 {
		fsys := crashfs.New()
		o := options(fsys)
		o.SyncInterval = time.Microsecond
		j := open(t, o)
		var using sync.WaitGroup
		var acknowledged atomic.Uint64
		started := make(chan struct{}, 100_000)
		for range 4 {
			using.Go(func() {
				for {
					f, err := j.Append(payload(1, 700), nil, true)
					if err == nil {
						err = j.Sync(f.Number)
					}
					if err != nil {
						if !isClosed(err) {
							t.Error("append", err)
						}
						return
					}
					for last := acknowledged.Load(); last < f.Number && !acknowledged.CompareAndSwap(last, f.Number); last = acknowledged.Load() {
					}
					select {
					case started <- struct{}{}:
					default:
					}
				}
			})
			using.Go(func() {
				for {
					if _, err := stored(j); err != nil {
						if !isClosed(err) {
							t.Error("read", err)
						}
						return
					}
				}
			})
		}
		for range 10 {
			<-started
		}
		require.NoError(t, j.Close())
		using.Wait()
		j = open(t, options(fsys.Crash(crashfs.KeepNone())))
		require.GreaterOrEqual(t, j.Last(), acknowledged.Load())
		require.NoError(t, j.Close())
	}
}

// expectingFS records the space that its files are asked to prepare.
type expectingFS struct {
	vfs.FS
	expected chan int64 // number of bytes
}

type expectingFile struct {
	vfs.File
	expected chan int64
}

type expectingWindow struct {
	vfs.Mapping
	expected chan int64
}

func (f expectingFS) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	return expectingFile{file, f.expected}, err
}

func (f expectingFile) Map(off, size int64) (vfs.Mapping, error) {
	w, err := f.File.(vfs.Mapper).Map(off, size)
	return expectingWindow{w, f.expected}, err
}

func (w expectingWindow) Expect(off, n int64) {
	w.Mapping.Expect(off, n)
	w.expected <- n
}

// Space is prepared for as much as was written since the last time, and after a sync,
// which discards prepared space, since the last sync.
func TestSpaceForWhatWasWritten(t *testing.T) {
	fsys := expectingFS{crashfs.New(), make(chan int64, 100)}
	o := options(fsys)
	o.SegmentSize = 1 << 20
	j := open(t, o)
	burst := func(n int) (size int64) {
		start := j.End().Offset
		for i := range n {
			_, err := j.Append(payload(i, 300), nil, true)
			require.NoError(t, err)
		}
		return j.End().Offset - start
	}
	for _, synced := range []bool{false, true} { // the segment is new to both
		burst(1)
		j.prepareSpace(synced)
		<-fsys.expected
	}
	one := burst(10)
	j.prepareSpace(false)
	require.Equal(t, one, <-fsys.expected)
	two := burst(20)
	j.prepareSpace(false)
	require.Equal(t, two, <-fsys.expected)
	j.prepareSpace(false)
	require.Empty(t, fsys.expected, "nothing was written")
	j.prepareSpace(true)
	require.Equal(t, one+two, <-fsys.expected)
	j.prepareSpace(true)
	require.Empty(t, fsys.expected)
	require.NoError(t, j.Close())
}

// Space is prepared in pauses of writers, without waiting for the sync.
func TestSpaceIsPreparedInPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := expectingFS{crashfs.New(), make(chan int64, 100)}
		o := options(fsys)
		o.SyncInterval = time.Minute
		j := open(t, o)
		_, err := j.Append(payload(1, 300), nil, true)
		require.NoError(t, err)
		synced, err := j.tend(time.Now().Add(time.Millisecond)) // it is called again
		require.NoError(t, err)
		require.False(t, synced)
		select {
		case <-fsys.expected:
		case <-patience(t).Done():
			require.FailNow(t, "no room was made")
		}
		require.NoError(t, j.Close())
	})
}
