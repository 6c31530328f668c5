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
	info, err := t.Info(ctx)
	if err != nil {
		return nil, err
	}
	r := &records.Thread{
		ID: info.ID.String(), SourceID: info.SourceID, User: info.UserID, Title: info.Title,
		Current:  s.thread != nil && s.thread.ID() == info.ID,
		Metadata: records.JSON(info.Metadata), CreatedAt: info.CreatedAt.UTC(), UpdatedAt: info.UpdatedAt.UTC(),
	}
	for _, err := range s.store.View().Branches(ctx, info.ID, "", "") {
		if err != nil {
			return nil, err
		}
		r.Branches++
	}
	if info.Active.IsZero() {
		return r, nil
	}
	r.Context = info.Active.String()
	active, err := t.Branch(ctx, "")
	r.Branch, r.Messages = active.Name, active.Length
	return r, err
}
