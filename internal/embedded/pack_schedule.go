package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
)

const (
	// Segments are packed after a pause: a time of Options.packQuiet in which less than quietBytes were written. Without a pause they
	// are packed when they have bulkFactor times the size at which packing starts. So what is written at once becomes few
	// large packs, which are not written again.
	quietBytes = 1 << 20
	bulkFactor = 8
	// packAfter is the delay after opening until segments sealed earlier are packed. A
	// program that only writes a little and ends should not begin packing.
	packAfter = time.Second
)

// errClosing cancels work in the background.
var errClosing = fmt.Errorf("closing: %w", backend.ErrClosed)

// packSchedule decides when sealed segments are packed in the background.
type packSchedule struct {
	opt     *Options
	journal *journal.Journal
	pack    func(context.Context) error // packs sealed segments if there are enough
	begin   func() error                // keeps the files open until end
	end     func()

	ctx    context.Context
	cancel context.CancelCauseFunc
	busy   atomic.Bool  // packing
	sealed atomic.Bool  // segments were sealed since packing last looked
	opened *time.Timer  // starts packing of segments that were sealed before the store was opened
	left   atomic.Int64 // one more than the size of the journal that had such segments, until it was asked
	wait   sync.WaitGroup
}

// segmentSealed packs sealed segments in the background if there are enough. Segments that
// are sealed meanwhile are packed afterwards. The caller keeps the files open.
func (s *packSchedule) segmentSealed() {
	if s.opt.NoPacking || s.opt.ReadOnly {
		return
	}
	s.sealed.Store(true)
	if s.busy.Swap(true) {
		return
	}
	s.wait.Add(1)
	go func() {
		defer s.wait.Done()
		for {
			for s.sealed.Swap(false) {
				if !s.awaitQuiet() {
					continue
				}
				if err := s.pack(s.ctx); err != nil && !errors.Is(err, errClosing) {
					s.opt.Logger.Warn("packing in the background failed", "err", err)
				}
			}
			// Segments sealed before this are packed by this goroutine.
			s.busy.Store(false)
			if !s.sealed.Load() || s.busy.Swap(true) {
				return
			}
		}
	}()
}

// awaitQuiet waits until the store is written little, or has many segments to pack, and reports whether there are enough.
// What was left when the store was opened waits only if it is written again.
func (s *packSchedule) awaitQuiet() bool {
	for size := s.left.Swap(0) - 1; ; {
		waiting, was := s.waiting(), size
		if waiting < s.opt.packBytes {
			return false
		}
		if size = s.journal.Size(); s.opt.packQuiet <= 0 || waiting >= bulkFactor*s.opt.packBytes || was >= 0 && size-was < quietBytes {
			return true
		}
		select {
		case <-s.ctx.Done():
			return false
		case <-time.After(s.opt.packQuiet):
		}
	}
}

// waiting returns the size of sealed segments that are not packed.
func (s *packSchedule) waiting() (bytes int64) {
	for _, f := range s.journal.Segments() {
		if f.Sealed && !f.Packed {
			bytes += f.Bytes
		}
	}
	return bytes
}

// enough reports whether enough segments wait.
func (s *packSchedule) enough() bool { return s.waiting() >= s.opt.packBytes }

// start schedules packing of segments that were sealed before the store was opened, if there are enough: their packing
// was interrupted or skipped.
func (s *packSchedule) start(j *journal.Journal) {
	s.journal = j
	if s.opt.NoPacking || s.opt.ReadOnly || !s.enough() {
		return
	}
	s.left.Store(j.Size() + 1)
	s.opened = time.AfterFunc(packAfter, func() {
		if s.begin() == nil {
			s.segmentSealed()
			s.end()
		}
	})
}

// stop cancels packing. The caller waits for its end (wait) once no call has the files open.
func (s *packSchedule) stop() {
	s.cancel(errClosing)
	if s.opened != nil {
		s.opened.Stop()
	}
}
