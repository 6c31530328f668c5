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
	written uint64
	busy    bool
	err     error // of a failed sync: the disk's state is unknown, so it stays
	timer   *time.Timer
	stopped bool

	durable atomic.Uint64
}

func (s *syncState) init(file vfs.File, last uint64) {
	s.done.L = &s.mu
	s.file, s.written = file, last
	s.durable.Store(last)
}

func (s *syncState) wrote(file vfs.File, number uint64) {
	s.mu.Lock()
	s.file, s.written = file, number
	s.mu.Unlock()
}

func (s *syncState) durableNumber() uint64 { return s.durable.Load() }

func (s *syncState) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
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
	number = min(number, s.written)
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
	if s.err != nil {
		return s.err
	}
	s.busy = true
	s.gather()
	file, target := s.file, s.written
	s.mu.Unlock()
	err := file.Sync()
	s.mu.Lock()
	s.busy = false
	if err != nil {
		s.err = fmt.Errorf("sync journal: %w: %w", err, backend.ErrReadOnly)
	} else {
		s.durable.Store(max(target, s.durable.Load()))
	}
	s.done.Broadcast()
	return s.err
}

// gather lets the writers that the last sync woke write what they have next, as
// long as any does. Without it, every other sync would be for one of them alone.
func (s *syncState) gather() {
	for range 16 {
		before := s.written
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
		if s.written == before {
			return
		}
	}
}

// syncLater sees to it that what is written now is synced within the interval.
func (j *Journal) syncLater() {
	s := &j.sync
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil || s.stopped {
		return
	}
	s.timer = time.AfterFunc(j.opt.SyncInterval, func() {
		var err error
		s.mu.Lock()
		s.timer = nil
		if !s.stopped {
			err = s.until(s.written)
		}
		s.mu.Unlock()
		if err != nil {
			j.opt.Log(err.Error())
		}
	})
}
