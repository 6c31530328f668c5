package embedded

import (
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
)

const (
	// backgroundBytes is the default size of sealed segments at which packing in the
	// background starts.
	backgroundBytes = 32 << 20
	// Segments are packed after a pause: a time of quietTime in which less than quietBytes were written. Without a pause they
	// are packed when they have bulkFactor times the size at which packing starts. So what is written at once becomes few
	// large packs, which are not written again.
	quietTime  = 2 * time.Second
	quietBytes = 1 << 20
	bulkFactor = 8
	// packAfter is the delay after opening until segments sealed earlier are packed. A
	// program that only writes a little and ends should not begin packing.
	packAfter = time.Second
)

// errClosing cancels work in the background.
var errClosing = fmt.Errorf("closing: %w", backend.ErrClosed)

// packLater packs sealed segments in the background if there are enough. Segments that
// are sealed meanwhile are packed afterwards. The caller holds files for reading.
func (e *Engine) packLater() {
	if e.opt.NoPacking || e.opt.ReadOnly {
		return
	}
	e.background.sealed.Store(true)
	if e.background.busy.Swap(true) {
		return
	}
	e.background.wait.Add(1)
	go func() {
		defer e.background.wait.Done()
		for {
			for e.background.sealed.Swap(false) {
				if err := e.packWaiting(); err != nil && !errors.Is(err, errClosing) {
					e.opt.Logger.Warn("packing in the background failed", "err", err)
				}
			}
			// Segments sealed before this are packed by this goroutine.
			e.background.busy.Store(false)
			if !e.background.sealed.Load() || e.background.busy.Swap(true) {
				return
			}
		}
	}()
}

// awaitQuiet waits until the store is written little, or has many segments to pack, and reports whether there are enough.
// What was left when the store was opened waits only if it is written again.
func (e *Engine) awaitQuiet() bool {
	for size := e.background.left.Swap(0) - 1; ; {
		waiting, was := e.waitingToPack(), size
		if waiting < e.opt.packBytes {
			return false
		}
		if size = e.journal.Size(); e.opt.packQuiet <= 0 || waiting >= bulkFactor*e.opt.packBytes || was >= 0 && size-was < quietBytes {
			return true
		}
		select {
		case <-e.background.ctx.Done():
			return false
		case <-time.After(e.opt.packQuiet):
		}
	}
}

// packWaiting packs sealed segments if there are enough.
func (e *Engine) packWaiting() error {
	if !e.awaitQuiet() || e.begin() != nil {
		return nil // too little, or the engine is being closed
	}
	defer e.end()
	e.packing.Lock()
	defer e.packing.Unlock()
	if e.waitingToPack() < e.opt.packBytes {
		return nil
	}
	_, err := e.pack(e.background.ctx, backend.PackOptions{})
	return err
}

// waitingToPack returns the size of sealed segments that are not packed.
func (e *Engine) waitingToPack() (bytes int64) {
	for _, f := range e.journal.Segments() {
		if f.Sealed && !f.Packed {
			bytes += f.Bytes
		}
	}
	return bytes
}

// packLeftovers schedules packing of segments that were sealed before the store was
// opened, if there are enough: their packing was interrupted or skipped.
func (e *Engine) packLeftovers() {
	if e.opt.NoPacking || e.opt.ReadOnly || e.waitingToPack() < e.opt.packBytes {
		return
	}
	e.background.left.Store(e.journal.Size() + 1)
	e.background.opened = time.AfterFunc(packAfter, func() {
		if e.begin() == nil {
			e.packLater()
			e.end()
		}
	})
}
