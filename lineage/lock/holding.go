package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// holding is an acquired lock, from creation to release. A goroutine refreshes it until stop.
type holding struct {
	lockFile string
	record   record // as created; the token identifies our lock file

	ctx  context.Context // ends with the holding; its cause is the reason
	end  context.CancelCauseFunc
	done chan struct{} // closed when the goroutine has returned
}

func hold(lockFile string, r record, opts Options) *holding {
	h := &holding{lockFile: lockFile, record: r, done: make(chan struct{})}
	h.ctx, h.end = context.WithCancelCause(context.Background())
	go h.refresh(opts)
	return h
}

// refresh refreshes the lock until the holding ends or is lost.
func (h *holding) refresh(opts Options) {
	defer close(h.done)
	ticker := time.NewTicker(opts.Refresh)
	defer ticker.Stop()
	renewed := time.Now()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-ticker.C:
		}
		started := time.Now()
		err := h.renew(h.ctx)
		switch {
		case err == nil:
			renewed = started
		case errors.Is(err, ErrLost):
			h.end(err)
			return
		case time.Since(renewed) >= opts.Stale:
			h.end(fmt.Errorf("%s: %w: not refreshed for %v: %w", h.lockFile, ErrLost, opts.Stale, err))
			return
		}
	}
}

// renew refreshes the lock file. It returns ErrLost if the file is no longer ours.
func (h *holding) renew(ctx context.Context) error {
	g, err := h.enterGuard(ctx)
	if err != nil {
		return err
	}
	defer g.leave()
	r := h.record
	r.Timestamp = time.Now().UnixMilli()
	if err := refreshFile(h.lockFile, r); err != nil {
		return fmt.Errorf("refresh %s: %w", h.lockFile, err)
	}
	return nil
}

// enterGuard enters the guard. It returns ErrLost if the directory, and so the lock file, is gone.
func (h *holding) enterGuard(ctx context.Context) (*guard, error) {
	g, err := enterGuard(ctx, h.lockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	return g, err
}

// stop ends refreshing. The lock file remains.
func (h *holding) stop(cause error) {
	h.end(cause)
	<-h.done
}

// removeFile removes the lock file of a stopped holding. It returns ErrLost if the lock was lost
// before. After any other error it can be called again.
func (h *holding) removeFile() error {
	g, err := h.enterGuard(context.Background())
	if err != nil {
		return err
	}
	defer g.leave()
	if err := removeOwn(h.lockFile, h.record); err != nil {
		return fmt.Errorf("release %s: %w", h.lockFile, err)
	}
	if cause := context.Cause(h.ctx); errors.Is(cause, ErrLost) {
		return cause
	}
	return nil
}
