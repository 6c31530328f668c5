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
	record   holderRecord // as created; the token identifies our lock file

	ctx  context.Context // ends with the holding; its cause is the reason
	end  context.CancelCauseFunc
	done chan struct{} // closed when the goroutine has returned
}

func hold(lockFile string, r holderRecord, opts Options) *holding {
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
	return h.inGuard(ctx, "refresh", func() error {
		r := h.record
		r.Timestamp = time.Now().UnixMilli()
		return refreshFile(h.lockFile, r)
	})
}

// inGuard runs a change of the lock file inside the guard. It returns ErrLost if the file, or its
// directory, is gone.
func (h *holding) inGuard(ctx context.Context, what string, change func() error) error {
	g, err := enterGuard(ctx, h.lockFile)
	if err == nil {
		defer leaveGuard(g)
		err = change()
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: %w", ErrLost, err)
	}
	return fmt.Errorf("%s %s: %w", what, h.lockFile, err)
}

// stop ends refreshing. The lock file remains.
func (h *holding) stop(cause error) {
	h.end(cause)
	<-h.done
}

// removeFile removes the lock file of a stopped holding. It returns ErrLost if the lock was lost
// before. After any other error it can be called again.
func (h *holding) removeFile() error {
	err := h.inGuard(context.Background(), "release", func() error { return removeOwn(h.lockFile, h.record) })
	if err != nil {
		return err
	}
	return h.lost()
}

// lost returns the cause if the lock was lost.
func (h *holding) lost() error {
	if cause := context.Cause(h.ctx); errors.Is(cause, ErrLost) {
		return cause
	}
	return nil
}

// context returns a copy of parent that ends with the holding.
func (h *holding) context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	detach := context.AfterFunc(h.ctx, func() { cancel(context.Cause(h.ctx)) })
	return ctx, func() {
		detach()
		cancel(context.Canceled)
	}
}
