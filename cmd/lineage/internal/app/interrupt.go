package app

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// Grace is the time in which a command can end by itself after a signal. What a store has acknowledged survives the
// death of the process at any point. Tests change it.
var Grace = 1500 * time.Millisecond

// EndOnSignals returns a context that is cancelled by the first SIGINT or SIGTERM, with an *Interruption as its
// cause. The process ends at the second signal, or if the command does not end in time.
func EndOnSignals(ctx context.Context, grace time.Duration) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := &Interruption{<-signals}
		cancel(first)
		select {
		case second := <-signals:
			os.Exit((&Interruption{second}).code())
		case <-time.After(grace):
			// The command is still running, so its App is not used here.
			a := New(nil, io.Discard, os.Stderr, os.Getenv)
			a.JSON = slices.Contains(os.Args, "--json")
			os.Exit(a.Fail(first))
		}
	}()
	return ctx
}

// Stopped reports whether an error states nothing but the end of a command's context. A command that runs until it is
// stopped has not failed then.
func Stopped(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() == nil {
		return false
	}
	if err == context.Cause(ctx) || err == ctx.Err() {
		return true
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		return Stopped(ctx, err.Unwrap())
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(err.Unwrap(), func(e error) bool { return !Stopped(ctx, e) })
	}
	return false
}
