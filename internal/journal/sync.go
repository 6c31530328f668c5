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

// syncState lets any number of writers share one sync. The first writer that needs a
// sync does it for all frames written before it starts; writers that come during a
// sync wait, and one of them does the next.
type syncState struct {
	mu      sync.Mutex
	done    sync.Cond // a sync ended
	file    vfs.File  // the segment with the last written commit
	busy    bool
	timer   *time.Timer
	stopped bool

	// Writers read these without the lock. failed is permanent, because the state of
	// the disk is unknown after a failed sync. The timer's callback resets armed
	// before it reads written.
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

// switchTo sets the file of all later frames. Everything written before is durable.
func (s *syncState) switchTo(file vfs.File) {
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

// until is Sync with the lock held.
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

// again syncs even if every commit is durable.
func (s *syncState) again() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.busy {
		s.done.Wait()
	}
	return s.run()
}

// run does one sync. It is called with the lock held, which it releases during the
// sync, and while no other sync runs.
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

// fail records that a sync failed and returns the error.
func (s *syncState) fail(cause error) error {
	err := fmt.Errorf("sync journal: %w: %w", cause, backend.ErrReadOnly)
	s.failed.Store(&err)
	return err
}

// gather lets the writers woken by the last sync write their next frames, as long as
// any does. Otherwise every second sync would serve one writer alone.
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
