package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
)

func serveCommand(a *app) *cobra.Command {
	idle := time.Duration(0)
	c := &cobra.Command{
		Use:   "serve",
		Short: "Keep a store open for other processes",
		Long: `Keeps a store open and serves the other processes of this user on this machine, until it is
interrupted, or with --idle until the store has not been used for some time.

It is not necessary: the first process that opens a store serves the others. With it the store is
always open, and no process has to take over when another one exits.`,
		Example: `  lineage serve --idle 100ms`,
		Args:    cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) error {
			if idle < 0 {
				return usagef("--idle: must be 0 or more")
			}
			dir, err := a.findStore(false)
			if err != nil {
				return err
			}
			if isServed(dir) {
				return usagef("%s: the server keeps this store open", redact(dir))
			}
			return a.open(ctx, noThread, func(ctx context.Context, s *session) error { return serve(ctx, s, idle) })
		}),
	}
	c.Flags().DurationVar(&idle, "idle", 0, "end after so long without another process; 0 is never")
	return c
}

// looksWhileIdle is how often the other processes are counted in the time after which serving ends.
const looksWhileIdle = 10

func serve(ctx context.Context, s *session, idle time.Duration) error {
	s.note("serving %s", screen.Line(s.name))
	if idle == 0 {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	used := time.Now()
	tick := time.NewTicker(min(max(idle/looksWhileIdle, time.Millisecond), time.Second))
	defer tick.Stop()
	for time.Since(used) < idle {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		all, err := s.store.Processes(ctx)
		if err != nil {
			return err
		}
		if !all.Owns || len(all.Guests) > 0 {
			used = time.Now()
		}
	}
	return nil
}
