package index

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every commit writes its number under all of these keys, so a reader that sees
// two numbers has seen a partial commit.
func commitOf(number uint64, keys int) []Entry {
	return batchOf(0, keys, same(fmt.Sprint(number)))
}

// Readers with old and new snapshots run while a writer applies and checkpoints
// run: each sees one complete commit, as long as it likes.
func TestConcurrentReaders(t *testing.T) {
	const keys, commits, readers = 60, 400, 4
	db := open(t, newPath(t), Options{OverlayBytes: 4000})
	db.limits.leaves = 2
	db.bolt.NoSync = true
	db.Apply(at(1), commitOf(1, keys))

	var (
		done    atomic.Bool
		running sync.WaitGroup
		errs    = make([]error, readers)
	)
	check := func(s *Snapshot) error {
		want := fmt.Sprint(s.State().Number)
		n := 0
		for e, err := range s.Scan(nil, nil) {
			if err != nil {
				return err
			}
			if string(e.Value) != want {
				return fmt.Errorf("%w: %s=%s in commit %s", errWrong, e.Key, e.Value, want)
			}
			n++
		}
		if n != keys {
			return fmt.Errorf("%w: %d keys in commit %s", errWrong, n, want)
		}
		if e, ok, err := s.Last([]byte("c"), []byte("d")); err != nil || !ok || string(e.Value) != want {
			return fmt.Errorf("%w: last is %s, %v, %w", errWrong, e.Value, ok, err)
		}
		v, ok, err := s.Get([]byte(key(7)))
		if err != nil || !ok || string(v) != want {
			return fmt.Errorf("%w: get is %s, %v, %w", errWrong, v, ok, err)
		}
		return nil
	}
	for i := range readers {
		running.Go(func() {
			old := db.Snapshot()
			defer func() { old.Close() }()
			seen := uint64(0)
			for round := 0; !done.Load() && errs[i] == nil; round++ {
				s := db.Snapshot()
				if number := s.State().Number; number < seen {
					errs[i] = fmt.Errorf("%w: commit %d after %d", errWrong, number, seen)
				}
				seen = s.State().Number
				for _, s := range []*Snapshot{s, old} {
					if err := check(s); err != nil {
						errs[i] = err
					}
				}
				if _, ok, err := db.Get([]byte(key(3))); !ok || err != nil {
					errs[i] = fmt.Errorf("%w: %v, %w", errWrong, ok, err)
				}
				if round%5 == i {
					s, old = old, s
				}
				s.Close()
			}
		})
	}
	for n := uint64(2); n <= commits; n++ {
		db.Apply(at(n), commitOf(n, keys))
		require.NoError(t, db.Throttle())
		if n%97 == 0 {
			require.NoError(t, db.Checkpoint())
		}
	}
	done.Store(true)
	running.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	s := db.Snapshot()
	defer s.Close()
	require.NoError(t, check(s))
}

// More concurrent readers than a base has transactions.
func TestManyScansAtOnce(t *testing.T) {
	db := open(t, newPath(t), Options{})
	m := model{}
	batch := batchOf(0, 500, same("v"))
	m.apply(batch)
	db.Apply(at(1), batch)
	require.NoError(t, db.Checkpoint())
	s := db.Snapshot()
	defer s.Close()
	var running sync.WaitGroup
	errs := make([]error, 50)
	for i := range errs {
		running.Go(func() {
			for e, err := range s.Scan(nil, nil) { // reads inside a scan must not wait for it
				if errs[i] == nil {
					errs[i] = err
				}
				if err := m.checkGet(s, string(e.Key)); err != nil {
					errs[i] = err
				}
			}
		})
	}
	running.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// Closing a snapshot during reads ends these with an error, and the index can
// be closed afterwards.
func TestCloseWhileReading(t *testing.T) {
	db := open(t, newPath(t), Options{})
	db.Apply(at(1), batchOf(0, 2000, same("v")))
	require.NoError(t, db.Checkpoint())
	for _, onlyHolder := range []bool{false, true} {
		s := db.Snapshot()
		if onlyHolder { // of an old base
			db.Apply(at(2), batchOf(0, 10, same("w")))
			require.NoError(t, db.Checkpoint())
		}
		n := 0
		var failed error
		for _, err := range s.Scan(nil, nil) {
			if n++; n == 5 {
				s.Close()
			}
			failed = err
		}
		require.ErrorIs(t, failed, errClosed)
		require.Less(t, n, 2000)
	}
	require.NoError(t, db.Close())
}

// Results stay valid through later commits and checkpoints.
func TestReadsAreCopies(t *testing.T) {
	db := open(t, newPath(t), Options{})
	db.bolt.NoSync = true
	db.Apply(at(1), commitOf(1, 200))
	require.NoError(t, db.Checkpoint())
	s := db.Snapshot()
	var entries []Entry
	for e, err := range s.Scan(nil, nil) {
		require.NoError(t, err)
		entries = append(entries, e)
	}
	value, _, err := s.Get([]byte(key(9)))
	require.NoError(t, err)
	last, _, err := s.Last(nil, nil)
	require.NoError(t, err)
	s.Close()
	for n := uint64(2); n < 8; n++ {
		db.Apply(at(n), commitOf(n, 200))
		require.NoError(t, db.Checkpoint())
	}
	require.Len(t, entries, 200)
	for _, e := range append(entries, last, Entry{Key: []byte(key(9)), Value: value}) {
		require.Equal(t, "1", string(e.Value))
		require.Contains(t, string(e.Key), "/")
	}
}

// Last skips any number of deletions without recursion.
//
//test:norace
func TestLastSkipsDeletions(t *testing.T) {
	db := open(t, newPath(t), Options{})
	m := model{}
	batch := batchOf(0, 3000, same("v"))
	m.apply(batch)
	db.Apply(at(1), batch)
	require.NoError(t, db.Checkpoint())
	first := m.keys()[0]
	gone := batchOf(0, 6000, same(""))
	for i := range gone {
		gone[i].Value = nil
	}
	for i := range gone {
		if string(gone[i].Key) == first {
			gone[i].Value = []byte("left")
		}
	}
	m.apply(gone)
	db.Apply(at(2), gone)
	s := db.Snapshot()
	defer s.Close()
	require.NoError(t, m.checkLast(s, nil, nil))
	require.NoError(t, m.checkLast(s, []byte(first+"\x00"), nil))
	require.NoError(t, m.checkLast(s, nil, []byte("c")))
}
