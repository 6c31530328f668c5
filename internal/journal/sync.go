package journal

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// syncState lets any number of writers share one sync. The first that needs one
// does it for all whose frames were written before it began; those that come
// while it runs wait, and one of them does the next.
type syncState struct {
	mu      sync.Mutex
	done    sync.Cond // a sync ended
	file    vfs.File  // the segment that holds the last written commit
	busy    bool
	timer   *time.Timer
	stopped bool

	// Writers look at these without the lock. The error is of a failed sync: the
	// disk's state is unknown then, so it stays. The timer's callback takes back that
	// it is armed before it looks at what was written.
	written, durable atomic.Uint64
	failed           atomic.Pointer[error]
	armed            atomic.Bool
}

func (s *syncState) init(file vfs.File, last uint64) {
	s.done.L = &s.mu
	s.file = file
	s.written.Store(last)
	s.durable.Store(last)
}

// goOnIn says that what is written from here on stands in another file. All that
// was written before is durable.
func (s *syncState) goOnIn(file vfs.File) {
	s.mu.Lock()
	s.file = file
	s.mu.Unlock()
}

func (s *syncState) durableNumber() uint64 { return s.durable.Load() }

func (s *syncState) failure() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *syncState) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
	}
	for s.busy {
		s.done.Wait()
	}
}

// Durable returns the last commit that is known to survive power loss.
func (j *Journal) Durable() uint64 { return j.sync.durableNumber() }

// Sync returns when the commits up to the given number, as far as they have been
// appended, survive power loss. After a failed sync the kernel may have dropped
// what it could not write, so the journal takes no more commits until reopened.
func (j *Journal) Sync(number uint64) error {
	j.sync.mu.Lock()
	defer j.sync.mu.Unlock()
	return j.sync.until(number)
}

// until is Sync, called with the lock.
func (s *syncState) until(number uint64) error {
	number = min(number, s.written.Load())
	for s.durable.Load() < number {
		if s.busy {
			s.done.Wait()
		} else if err := s.run(); err != nil {
			return err
		}
	}
	return nil
}

// again syncs even when every commit is durable.
func (s *syncState) again() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.busy {
		s.done.Wait()
	}
	return s.run()
}

// run does one sync. It is called with the lock, which it lets go of meanwhile,
// and while no other sync runs.
func (s *syncState) run() error {
	if err := s.failure(); err != nil {
		return err
	}
	s.busy = true
	s.gather()
	file, target := s.file, s.written.Load()
	s.mu.Unlock()
	err := file.Sync()
	s.mu.Lock()
	s.busy = false
	if err != nil {
		err = s.fail(err)
	} else {
		s.durable.Store(max(target, s.durable.Load()))
	}
	s.done.Broadcast()
	return err
}

// fail notes that a sync failed and returns what that means.
func (s *syncState) fail(cause error) error {
	err := fmt.Errorf("sync journal: %w: %w", cause, backend.ErrReadOnly)
	s.failed.Store(&err)
	return err
}

// gather lets the writers that the last sync woke write what they have next, as
// long as any does. Without it, every other sync would be for one of them alone.
func (s *syncState) gather() {
	for range 16 {
		before := s.written.Load()
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
		if s.written.Load() == before {
			return
		}
	}
}

// syncLater sees to it that what is written now is synced within the interval.
func (j *Journal) syncLater() {
	s := &j.sync
	if s.armed.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil || s.stopped {
		return
	}
	s.armed.Store(true)
	j.tendLater(time.Now().Add(j.opt.SyncInterval))
}

// pausesPerSync is how often within the interval the journal looks for pauses.
const pausesPerSync = 10

// tendLater has the journal make room for more in the pauses of those who write, and
// sync when that is due. It is called with the lock of the sync state.
func (j *Journal) tendLater(due time.Time) {
	s := &j.sync
	s.timer = time.AfterFunc(min(j.opt.SyncInterval/pausesPerSync, time.Until(due)), func() {
		synced, err := j.tend(due)
		if err != nil {
			j.opt.Logger.Error("sync failed", "err", err)
			return
		}
		j.makeRoom(synced)
	})
}

// tend syncs if that is due.
func (j *Journal) tend(due time.Time) (synced bool, err error) {
	s := &j.sync
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped && time.Now().Before(due) {
		j.tendLater(due)
		return false, nil
	}
	s.timer = nil
	s.armed.Store(false)
	if s.stopped {
		return false, nil
	}
	return true, s.until(s.written.Load())
}
