package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// grace is how long a command has to end by itself after a signal. What a store has
// acknowledged survives the death of the process at any point.
const grace = 1500 * time.Millisecond

// interruption is a signal to end. It matches errInterrupted.
type interruption struct{ signal os.Signal }

func (e *interruption) Error() string        { return errInterrupted.Error() }
func (e *interruption) Is(target error) bool { return target == errInterrupted }

// code returns the exit code, which is that of a process that the signal ended.
func (e *interruption) code() int {
	if e.signal == syscall.SIGTERM {
		return exitTerminated
	}
	return exitInterrupted
}

// endOnSignals returns a context that ends with the first SIGINT or SIGTERM, with an
// *interruption as its cause. The process ends with the second, or when the first was not
// obeyed in time.
func endOnSignals(ctx context.Context, grace time.Duration) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := &interruption{<-signals}
		cancel(first)
		select {
		case second := <-signals:
			os.Exit((&interruption{second}).code())
		case <-time.After(grace):
			// The command is still at work, so nothing of it is used here.
			a := newApp(nil, io.Discard, os.Stderr, os.Getenv)
			a.json = slices.Contains(os.Args, "--json")
			os.Exit(a.fail(first))
		}
	}()
	return ctx
}
