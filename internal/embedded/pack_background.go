package embedded

import (
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
)

const (
	// backgroundBytes is how many bytes of sealed segments packing in the background
	// waits for, unless the options say otherwise.
	backgroundBytes = 32 << 20
	// packAfter is how long a store has been open when what was sealed before is looked
	// at. A program that only says something and ends need not begin what it cannot end.
	packAfter = time.Second
)

// errClosing ends what runs in the background.
var errClosing = fmt.Errorf("closing: %w", backend.ErrClosed)

// packLater packs in the background what was sealed, when there is enough of it. What is
// sealed while it does so is packed after that. The caller holds files for reading.
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
			// Whoever sealed more before this left it to be packed here.
			e.background.busy.Store(false)
			if !e.background.sealed.Load() || e.background.busy.Swap(true) {
				return
			}
		}
	}()
}

// packWaiting packs what is sealed, when there is enough of it.
func (e *Engine) packWaiting() error {
	if e.begin() != nil {
		return nil // it is being closed
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

// waitingToPack returns how many bytes are sealed and not packed.
func (e *Engine) waitingToPack() (bytes int64) {
	for _, p := range packPlan(e.journal.Segments(), false) {
		bytes += p.bytes
	}
	return bytes
}

// packWhatWasLeft sees to it that what was sealed before the store was opened is packed,
// when there is enough of it: packing it was cut short, or left out.
func (e *Engine) packWhatWasLeft() {
	if e.opt.NoPacking || e.opt.ReadOnly || e.waitingToPack() < e.opt.packBytes {
		return
	}
	e.background.opened = time.AfterFunc(packAfter, func() {
		if e.begin() == nil {
			e.packLater()
			e.end()
		}
	})
}
