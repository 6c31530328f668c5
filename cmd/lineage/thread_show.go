package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

func threadShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show [THREAD]",
		Short:   "Show a thread",
		Example: `  lineage thread show lisbon`,
		Args:    cobra.MaximumNArgs(1),
		RunE: a.onThreads(reading, func(ctx context.Context, in threads, args []string) error {
			r, err := in.findThread(ctx, arg(args, 0))
			return a.printThread(r, err)
		}),
	}
}

// threadNamed returns the thread with a name; an empty name is the current thread's.
func (s *session) threadNamed(ctx context.Context, name string) (*lineage.Thread, error) {
	if name == "" {
		return s.needThread()
	}
	return s.refs.Thread(ctx, name)
}

// findThread implements threads.
func (s inStore) findThread(ctx context.Context, name string) (*records.Thread, error) {
	t, err := s.threadNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := s.threadRecord(ctx, t)
	if err != nil {
		return nil, err
	}
	return r, s.addUsage(ctx, r)
}

// printThread prints a thread that a command found or changed, unless that failed.
func (a *app) printThread(r *records.Thread, err error) error {
	if err != nil {
		return err
	}
	return a.facts(r, [][2]string{
		{"thread", r.ID}, {"id", r.SourceID}, {"title", r.Title}, {"user", r.User},
		{"branch", r.Branch}, {"branches", screen.Count(r.Branches)}, {"messages", screen.Count(r.Messages)}, {"used", usedText(r.Usage)},
		{"created", screen.Time(r.CreatedAt)}, {"changed", screen.Time(r.UpdatedAt)}, {"metadata", string(r.Metadata)},
	}...)
}
