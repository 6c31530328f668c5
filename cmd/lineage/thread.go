package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

func threadCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "thread",
		Aliases: []string{"threads"},
		Short:   "List, create and change threads",
		Long: `Lists, creates and changes threads. A thread is a conversation with its branches and checkpoints. Without a subcommand, threads
are listed.`,
		Example: `  lineage thread
  lineage thread create --title "Trip to Porto" --id porto`,
		Args: knownCommand,
		RunE: a.onThreads(reading, func(ctx context.Context, in threads, _ []string) error {
			return runThreadList(ctx, a, in, &threadListOptions{})
		}),
	}
	c.AddCommand(
		threadListCommand(a), threadCreateCommand(a), threadShowCommand(a), threadSetCommand(a), threadUseCommand(a), threadDeleteCommand(a),
	)
	return c
}

func (s *session) threadRecord(ctx context.Context, t *lineage.Thread) (*records.Thread, error) {
	r, err := records.OfThread(ctx, s.store, t)
	if err == nil {
		r.Current = s.thread != nil && s.thread.ID() == t.ID()
	}
	return r, err
}
