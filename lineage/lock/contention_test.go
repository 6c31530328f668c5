package lock

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/vfs"
)

// feature: lock/processes
func TestProcessesExcludeEachOther(t *testing.T) {
	const processes, rounds = 4, 100
	path := target(t)
	require.NoError(t, os.WriteFile(path, []byte("0"), 0o600))
	workers := startWorkers(t, processes)
	for _, w := range workers {
		w.tell("count", path, rounds)
	}
	for _, w := range workers {
		require.Equal(t, "ok", w.answer())
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(processes*rounds), string(data))
	requireFiles(t, filepath.Dir(path), "session.json")
}

func TestKilledHoldersGiveWay(t *testing.T) {
	const processes, kills, forever = 3, 25, 1 << 30
	path := target(t)
	workers := startWorkers(t, processes)
	for _, w := range workers {
		w.tell("visit", path, forever)
	}
	for range kills {
		seen := size(t, path)
		require.Eventually(t, func() bool { return size(t, path) > seen+2 },
			hangs, time.Millisecond, "nobody gets in")
		time.Sleep(rand.N(3 * time.Millisecond))
		victim := rand.N(processes)
		workers[victim].kill()
		workers[victim] = startWorker(t)
		workers[victim].tell("visit", path, forever)
	}
	// A worker that met another one has reported it and waits for commands.
	for _, w := range workers {
		w.signal()
		rest, _ := w.out.ReadString('\n')
		require.Empty(t, rest)
		w.reap()
	}
	requireAcquires(t, New(path, Options{}))
}

// feature: lock/stale
func TestOneOfManyTakesAStaleLock(t *testing.T) {
	const processes, rounds = 5, 100
	dir := t.TempDir()
	dead := startWorker(t)
	dead.kill()
	workers := startWorkers(t, processes)
	for round := range rounds {
		path := filepath.Join(dir, strconv.Itoa(round))
		writeLock(t, path, holderRecord{PID: dead.pid(), Timestamp: time.Now().UnixMilli(), Hostname: hostname(t)})
		for _, w := range workers {
			w.tell("take", path, 1)
		}
		var won int
		for _, w := range workers {
			switch answer := w.answer(); answer {
			case "ok":
				won++
			default:
				require.Equal(t, "held", answer)
			}
		}
		require.Equal(t, 1, won, "round %d", round)
	}
}

func TestOneAtATimeAfterAStaleLock(t *testing.T) {
	const processes, rounds = 5, 40
	dir := t.TempDir()
	dead := startWorker(t)
	dead.kill()
	workers := startWorkers(t, processes)
	for round := range rounds {
		path := filepath.Join(dir, strconv.Itoa(round))
		writeLock(t, path, holderRecord{PID: dead.pid(), Timestamp: time.Now().UnixMilli(), Hostname: hostname(t)})
		for _, w := range workers {
			w.tell("visit", path, 1)
		}
		for _, w := range workers {
			require.Equal(t, "ok", w.answer(), "round %d", round)
		}
		require.EqualValues(t, processes, size(t, path))
	}
}

// feature: lock/stale
func TestDeadHolderIsStaleAtOnce(t *testing.T) {
	path := target(t)
	w := startWorker(t)
	w.tell("take", path, 1)
	require.Equal(t, "ok", w.answer())

	l := New(path, Options{})
	won, err := l.TryAcquire()
	require.NoError(t, err)
	require.False(t, won)
	holder, err := l.Holder()
	require.NoError(t, err)
	require.Equal(t, w.pid(), holder.PID)
	require.Equal(t, hostname(t), holder.Hostname)

	w.kill()
	holder, err = l.Holder()
	require.NoError(t, err)
	require.Nil(t, holder)
	requireAcquires(t, l)
}

// A killed process is a zombie until its parent waits for it.
func TestZombieIsDead(t *testing.T) {
	w := startWorker(t)
	require.True(t, probe(w.pid()).running)
	w.signal()
	_, err := w.out.ReadByte()
	require.Error(t, err)
	require.Eventually(t, func() bool { return !probe(w.pid()).running }, hangs, time.Millisecond)
	w.reap()
	require.False(t, probe(w.pid()).running)
}

func TestGuardSurvivesCrash(t *testing.T) {
	path := target(t)
	w := startWorker(t)
	w.tell("guard", path, 1)
	require.Equal(t, "ok", w.answer())

	_, err := tryGuard(path + ".lock.guard")
	require.ErrorIs(t, err, vfs.ErrBusy)
	w.kill()
	require.FileExists(t, path+".lock.guard")
	requireAcquires(t, New(path, Options{}))
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	stat, err := os.Stat(path)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return stat.Size()
}

func hostname(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	require.NoError(t, err)
	return name
}

// writeLock writes a lock file for path as another program would.
func writeLock(t *testing.T, path string, r holderRecord) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".lock", r.encode(), 0o600))
}

// requireAcquires acquires and releases the lock.
func requireAcquires(t *testing.T, l *Lock) {
	t.Helper()
	won, err := l.TryAcquire()
	require.NoError(t, err)
	require.True(t, won)
	require.NoError(t, l.Release())
}

// requireFiles checks the files of a directory, apart from the guard where it remains.
func requireFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	found := []string{}
	for _, e := range entries {
		if guardIsRemovable || filepath.Ext(e.Name()) != ".guard" {
			found = append(found, e.Name())
		}
	}
	require.ElementsMatch(t, names, found, fmt.Sprint(found))
}
